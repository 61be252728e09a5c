// Runs numbered tasks on several threads.
#pragma once

#include "api.h"

namespace lrcnet {

// Runs task(context, i) for i in [0, count) on at most `threads` threads, in any order, and returns when all are done.
void run_tasks(Task task, void* context, int count, int threads);

// Which threads run_tasks uses: "torch's OpenMP" or "own threads".
const char* thread_source();

}  // namespace lrcnet
