#!/usr/bin/env python3
"""Decode and prefill of Llama 3.2 1B beside llama.cpp's on this CPU, interleaved; prints a Markdown table.

  bench/compare_llama.py --llama-bench PATH [--memwall PATH] [--folder FOLDER] [--formats LIST] [--rounds N] [--threads N]

Each round runs every format in both programs, one after the other, on the same CPUs: memwall's whole decode steps
(`measure --step`, every layer's own weights) and the sum of its prefill ops, against llama-bench's tg32 at a depth of the
same context and its pp512, on a file of random weights (random_gguf.py, kept in FOLDER). KV caches are f16.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

CONTEXT, PROMPT, TOKENS = 1024, 512, 32


def run(words, environment=None):
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def ours(options, weights):
    environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    found = run([options.memwall, "measure", "llama-3.2-1b", "--device", "cpu", "--weights", weights, "--kv", "f16",
                 "--context", str(CONTEXT), "--prompt", str(PROMPT), "--step", "--threads", str(options.threads),
                 "--format", "json"], environment)
    step = found["decode"][0]["measured"]["step"]
    prefill = found["prefill"][0]["measured"]
    return step["tokens_per_s"], prefill["tokens_per_s"], sorted(set(step["flags"] + found["prefill"][0]["flags"]))


def theirs(options, file):
    words = [options.llama_bench, "-m", file, "-t", str(options.threads), "-r", "3", "-o", "json"]
    decode = run(words + ["-p", "0", "-n", str(TOKENS), "-d", str(CONTEXT)])
    prefill = run(words + ["-p", str(PROMPT), "-n", "0"])
    return decode[0]["avg_ts"], prefill[0]["avg_ts"], decode[0]["build_commit"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--memwall", default="build/release/memwall")
    parser.add_argument("--folder", default="build/gguf")
    parser.add_argument("--formats", default="f16,q8_0,q4_0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    formats = options.formats.split(",")
    files = {}
    for weights in formats:
        files[weights] = os.path.join(options.folder, f"llama-3.2-1b-random-{weights}.gguf")
        if not os.path.exists(files[weights]):
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_gguf.py")
            subprocess.run([sys.executable, script, weights, files[weights] + ".new"], check=True)
            os.rename(files[weights] + ".new", files[weights])
    rounds = {weights: [] for weights in formats}
    for number in range(options.rounds):
        for weights in formats:
            own_decode, own_prefill, flags = ours(options, weights)
            decode, prefill, build = theirs(options, files[weights])
            rounds[weights].append((own_decode, decode, own_prefill, prefill))
            print(f"round {number + 1}, {weights}: decode {own_decode:.1f} and {decode:.1f} tokens/s, prefill "
                  f"{own_prefill:.0f} and {prefill:.0f}{' (' + ', '.join(flags) + ')' if flags else ''}", file=sys.stderr)
    print(f"llama.cpp {build}, {options.threads} threads, context {CONTEXT}, prompt {PROMPT}\n")
    print("| weights | decode, tokens/s: memwall, llama.cpp | ratio (rounds) | prefill: memwall, llama.cpp | ratio (rounds) |")
    print("| --- | --- | --- | --- | --- |")
    for weights, found in rounds.items():
        cells = [weights]
        for own, other in ((0, 1), (2, 3)):
            ratios = [row[own] / row[other] for row in found]
            middle = [statistics.median(row[i] for row in found) for i in (own, other)]
            cells.append(f"{middle[0]:.1f}, {middle[1]:.1f}")
            cells.append(f"{statistics.median(ratios):.2f} ({', '.join(f'{r:.2f}' for r in ratios)})")
        print("| " + " | ".join(cells) + " |")


main()
