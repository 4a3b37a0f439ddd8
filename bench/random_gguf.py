#!/usr/bin/env python3
"""Writes a GGUF of Llama 3.2 1B with random weights, for comparing engines on shapes and bytes alone.

  bench/random_gguf.py FORMAT FILE     FORMAT: f16, q8_0, q4_0, q4_k

Every matrix, the tied embedding too, has that format; norms are f32. Blocks are laid out as in ggml-common.h, with random
quants under such scales that nothing overflows, from a stretch of some MiB that repeats. It has no tokens
(tokenizer.ggml.model "no_vocab"), which llama-bench does not ask for.
"""
import os
import struct
import sys

WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, FEED_FORWARD, VOCABULARY = 2048, 16, 32, 8, 64, 8192, 128256
ALIGNMENT = 32
F32, STRING, UINT32, FLOAT32 = 0, 8, 4, 6
SCALE = struct.pack("<e", 0.01)
# Name: ggml's type, general.file_type, weights a block, bytes a block, one block.
FORMATS = {
    "f16": (1, 1, 8, 16, lambda: b"".join(bytes([os.urandom(1)[0], 0x20 | os.urandom(1)[0] & 0x87]) for _ in range(8))),
    "q8_0": (8, 7, 32, 34, lambda: SCALE + os.urandom(32)),
    "q4_0": (2, 2, 32, 18, lambda: SCALE + os.urandom(16)),
    "q4_k": (12, 15, 256, 144, lambda: SCALE + SCALE + os.urandom(12) + os.urandom(128)),
}


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name, kind, value):
    packed = text(value) if kind == STRING else struct.pack("<I" if kind == UINT32 else "<f", value)
    return text(name) + struct.pack("<I", kind) + packed


def tensors():
    """(name, columns, rows; 0 rows: a norm), in the order of the file."""
    yield "token_embd.weight", WIDTH, VOCABULARY
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", WIDTH, 0
        yield block + "attn_q.weight", WIDTH, HEADS * HEAD
        yield block + "attn_k.weight", WIDTH, KV_HEADS * HEAD
        yield block + "attn_v.weight", WIDTH, KV_HEADS * HEAD
        yield block + "attn_output.weight", HEADS * HEAD, WIDTH
        yield block + "ffn_norm.weight", WIDTH, 0
        yield block + "ffn_gate.weight", WIDTH, FEED_FORWARD
        yield block + "ffn_up.weight", WIDTH, FEED_FORWARD
        yield block + "ffn_down.weight", FEED_FORWARD, WIDTH
    yield "output_norm.weight", WIDTH, 0


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in FORMATS:
        sys.exit("usage: random_gguf.py f16|q8_0|q4_0|q4_k FILE")
    kind, file_type, weights, block_bytes, block = FORMATS[sys.argv[1]]
    keys = [
        key("general.architecture", STRING, "llama"),
        key("general.name", STRING, "Llama 3.2 1B, random weights"),
        key("general.file_type", UINT32, file_type),
        key("llama.block_count", UINT32, LAYERS),
        key("llama.context_length", UINT32, 131072),
        key("llama.embedding_length", UINT32, WIDTH),
        key("llama.feed_forward_length", UINT32, FEED_FORWARD),
        key("llama.attention.head_count", UINT32, HEADS),
        key("llama.attention.head_count_kv", UINT32, KV_HEADS),
        key("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        key("llama.rope.freq_base", FLOAT32, 500000.0),
        key("llama.rope.dimension_count", UINT32, HEAD),
        key("llama.vocab_size", UINT32, VOCABULARY),
        key("tokenizer.ggml.model", STRING, "no_vocab"),
    ]
    infos, sizes, at = b"", [], 0
    for name, columns, rows in tensors():
        size = columns * 4 if rows == 0 else columns * rows // weights * block_bytes
        shape = struct.pack("<IQ", 1, columns) if rows == 0 else struct.pack("<IQQ", 2, columns, rows)
        infos += text(name) + shape + struct.pack("<IQ", F32 if rows == 0 else kind, at)
        sizes.append((size, rows == 0))
        at += -(-size // ALIGNMENT) * ALIGNMENT
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(sizes), len(keys)) + b"".join(keys) + infos
    stretch = b"".join(block() for _ in range((4 << 20) // block_bytes))
    with open(sys.argv[2], "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for size, is_norm in sizes:
            if is_norm:
                file.write(struct.pack(f"<{size // 4}f", *[1.0] * (size // 4)))
            else:
                for _ in range(size // len(stretch)):
                    file.write(stretch)
                file.write(stretch[: size % len(stretch)])
            file.write(bytes(-size % ALIGNMENT))


main()
