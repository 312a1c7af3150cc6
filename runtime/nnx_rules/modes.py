"""Modes: which attributes of the library's layers a mode sets, and which arguments their ``set_view`` takes."""

from __future__ import annotations

MODE_ATTRIBUTES: frozenset[str] = frozenset({"deterministic", "use_running_average"})
"""What ``train()`` and ``eval()`` set."""

VIEWS: dict[str, tuple[str, ...]] = {
    "BatchNorm": ("use_running_average",),
    "Dropout": ("deterministic",),
    "MultiHeadAttention": ("deterministic", "decode", "batch_size", "max_length"),
}
"""The parameters of ``set_view`` by layer."""

OWN_FLAGS: frozenset[str] = frozenset(
    {"training", "is_training", "is_train", "in_training", "train_mode", "training_mode"}
)
"""What people call a mode of their own."""
