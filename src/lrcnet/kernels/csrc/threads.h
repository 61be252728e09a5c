// Runs numbered tasks, or a team whose members wait for each other, on several threads.
#pragma once

#include "api.h"

namespace lrcnet {

// Runs task(context, i) for i in [0, count) on at most `threads` threads, in any order, and returns when all are done.
void run_tasks(Task task, void* context, int count, int threads);

// Runs task(context, member, members) on `members` threads at the same time and returns when all are done. There are at
// most `threads` of them, and fewer where the system does not give as many: one if it gives none.
void run_team(TeamTask task, void* context, int threads);

// Which threads both use: "torch's OpenMP" or "own threads".
const char* thread_source();

}  // namespace lrcnet
