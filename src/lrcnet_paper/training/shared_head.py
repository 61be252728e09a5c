"""The shared head: a convolutional head that is trained once per seed without memory, and its features of all frames.

Recurrent units that read the same features can be compared by themselves, at the paper's full length of training, in a
small part of the time that training end to end takes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lrcnet.models import dense
from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT, FEATURES, ConvHead, normalise_frames
from lrcnet_paper.tasks.data_folders import cache_folder
from lrcnet_paper.tasks.driving import CURVATURE_UNIT, FEATURE_VARIANTS, WindowSamples, recording, window_samples
from lrcnet_paper.training.atomic_files import write_atomically

# By the variant of the frames; the sample is there to see that everything runs.
UPDATES = {"own": 2000, "own-sample": 20}
FRAMES_PER_UPDATE = 32
RATE, WEIGHT_DECAY, CLIP = 5e-4, 1e-6, 1.0
SPLITS = ("train", "validation", "test")
# Part of the file's name; change it whenever the head's training changes.
_EDITION = 1


@lru_cache(maxsize=2)
def shared_features(variant: str, seed: int) -> dict[str, NDArray[np.float32]]:
    """Return split -> features (frame, 64) of its recording, standardised over the training frames.

    The head is trained when its features are not in the user's cache folder yet.
    """
    path = cache_folder() / "driving" / f"features-{variant}-seed{seed}-updates{UPDATES[variant]}-{_EDITION}.npz"
    if not path.exists():
        _write(path, variant, seed)
    with np.load(path, allow_pickle=False) as arrays:
        return {split: arrays[split] for split in SPLITS}


def feature_samples(variant: str, split: str, seed: int) -> WindowSamples:
    """Return the samples of a split: sequences of features (32, 64) of the head of a seed, and curvatures."""
    source = FEATURE_VARIANTS[variant]
    drives = replace(recording(source, split), frames=shared_features(source, seed)[split])
    return window_samples(source, split, drives)


def _write(path: Path, variant: str, seed: int) -> None:
    head = train_head(variant, seed)
    features = {split: _features(head, recording(variant, split).frames) for split in SPLITS}
    mean, std = features["train"].mean(0), features["train"].std(0)
    # A feature that never changes carries nothing; it stays 0.
    standard = {split: (values - mean) / np.maximum(std, 1e-6) for split, values in features.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: np.savez(file, **standard))


def train_head(variant: str, seed: int) -> ConvHead:
    """Train the convolutional head with a linear read-out of single frames, sharp bends as often as straight road."""
    updates = UPDATES[variant]
    drives = recording(variant, "train")
    labels = torch.from_numpy(np.asarray(drives.curvature))
    weights = _balance(labels)
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head, read_out = ConvHead(), dense(FEATURES, 1)
    parameters = [*head.parameters(), *read_out.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=RATE, weight_decay=WEIGHT_DECAY)
    for update in range(updates):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 + math.cos(math.pi * update / updates)) / 2
        chosen = torch.multinomial(weights, FRAMES_PER_UPDATE, replacement=True, generator=generator)
        frames = torch.from_numpy(np.asarray(drives.frames[np.sort(chosen.numpy())]))
        target = labels[chosen.sort().values]
        output = read_out(head(normalise_frames(frames))).squeeze(-1) * CURVATURE_PER_OUTPUT
        optimiser.zero_grad()
        torch.autograd.backward((((output - target) / CURVATURE_UNIT) ** 2).mean())
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimiser.step()
    return head.eval()


def _balance(labels: Tensor) -> Tensor:
    """Return weights by which straight road, gentle and sharp bends are drawn equally often."""
    from lrcnet_paper.driving.windows import CLASSES

    kind = torch.bucketize(labels.abs(), torch.tensor(CLASSES))
    counts = torch.bincount(kind, minlength=len(CLASSES) + 1)
    return 1 / counts[kind].double()


@torch.inference_mode()
def _features(head: ConvHead, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
    parts = [
        head(normalise_frames(torch.from_numpy(np.array(frames[start : start + 64]))))
        for start in range(0, len(frames), 64)
    ]
    array: NDArray[np.float32] = torch.cat(parts).numpy()
    return array
