#!/usr/bin/env python3
"""One page of Markdown from what scripts/gpu-check.sh left in a folder: python3 scripts/gpu-summary.py FOLDER"""

import json
import sys
from pathlib import Path


def load(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # the step failed; the table of steps says how


def number(value, digits=4):
    return "" if value is None else f"{value:.{digits}g}"


def percent(value):
    return "" if value is None else f"{100 * value:.0f} %"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"


def devices(found):
    rows = [
        (d["device"], d["name"], d.get("compute_capability", d.get("instruction_set")), number(d.get("peak_GBps")),
         d.get("card") or "")
        for d in found["devices"]
    ]
    cuda = found["cuda"]
    text = table(["device", "name", "architecture", "peak GB/s", "card"], rows)
    if not cuda["available"]:
        return text + f"\nNo GPU: {cuda['why_not']}\n"
    return text + f"\nCUDA {cuda['runtime']}, cuBLAS {cuda['cublas']}, cuBLASLt {cuda['cublasLt']}\n"


def baseline(found):
    device = found["device"]
    rows = [(s["pattern"], s["stores"] or "", number(s["GBps"])) for s in device["streams"]]
    text = table(["pattern", "stores", "GB/s"], rows) + "\n"
    rows = [
        (b["kernel"], b["format"], b["n"], number(b["ms"]), number(b["GBps"]), number(b["TFLOPs"]))
        for b in found["baselines"]["all"]
    ]
    text += table(["baseline", "format", "n", "ms", "GB/s", "TFLOP/s"], rows)
    gpu, launch = device.get("gpu"), device.get("launch")
    if gpu and gpu["card_GBps"]:
        text += f"\nread: {percent(gpu['read_of_card'])} of the {number(gpu['card_GBps'])} GB/s of {gpu['card']}"
        text += f" ({gpu['card_from']})\n"
    if launch:
        text += f"\na launch: {number(launch['t0_us'], 3)} us beside {number(launch['GBps'])} GB/s\n"
    if device.get("peaks_GFLOPs"):
        peaks = ", ".join(f"{kind} {number(g / 1e3)}" for kind, g in device["peaks_GFLOPs"].items())
        text += f"\nGEMM, TFLOP/s: {peaks}\n"
    if gpu and gpu["clocks_unknown"]:
        text += f"\nclocks are not known: {gpu['clocks_unknown']}\n"
    return text


def steps(found, weights):
    rows = []
    for run in found["decode"]:
        parts, whole = run["measured"], run["measured"].get("step")
        rows.append(
            (weights, run["batch"], number(parts["ms_per_step"]), number(whole and whole["ms_per_step"]),
             number(whole and whole["tokens_per_s"]), number(whole and whole["GBps"]),
             percent(whole and whole["of_read_bandwidth"]),
             "partial" if parts.get("partial") else "incomplete" if found.get("incomplete") else ""))
    return rows


def ops(found, weights):
    """The ops that read weights or cache, at each batch: the kernel used and its share of the read bandwidth."""
    rows = {}
    for run in found["decode"]:
        for op in run["ops"]:
            if op.get("not_measured"):
                cell = "not measured"
            elif op["of_read_bandwidth"] is None:
                continue
            else:
                cell = f"{percent(op['of_read_bandwidth'])} {op['variant']}"
                if op.get("of_same_size_read") is not None:
                    cell += f", {percent(op['of_same_size_read'])} of a read its size"
                if op.get("slowed", {}).get("samples"):
                    cell += f", slowed by {' and '.join(op['slowed']['by'])}"
            rows.setdefault(op["name"], {})[run["batch"]] = cell
    batches = [run["batch"] for run in found["decode"]]
    return [(weights, name, *(cells.get(b, "") for b in batches)) for name, cells in rows.items()], batches


def main():
    folder = Path(sys.argv[1])
    print("# GPU check\n")
    outcomes = [line.split("\t") for line in (folder / "steps.tsv").read_text(encoding="utf-8").splitlines()]
    found = load(folder / "devices.json")
    if found:
        print(f"memwall {found['memwall']['version']}, {found['memwall']['time']}\n\n" + devices(found))
    found = load(folder / "baseline.json")
    if found:
        print(baseline(found))
    runs = {}
    for path in sorted(folder.glob("measure-*.json")):
        run = load(path)
        if run:
            runs[path.stem.removeprefix("measure-")] = run
    if runs:
        first = next(iter(runs.values()))
        print(f"## {first['model']['title']}, decode, context {first['decode'][0]['context'] if first['decode'] else '?'}\n")
        rows = [row for weights, run in runs.items() for row in steps(run, weights)]
        print(table(["weights", "batch", "sum of parts, ms", "step, ms", "tokens/s", "GB/s", "of read", ""], rows))
        rows, batches = [], []
        for weights, run in runs.items():
            more, batches = ops(run, weights)
            rows += more
        print(table(["weights", "op, share of the read bandwidth", *(f"batch {b}" for b in batches)], rows))
        warnings = {w for run in runs.values() for w in run.get("warnings", [])}
        print("".join(f"- {w}\n" for w in sorted(warnings)))
    print("## Steps\n\n" + table(["step", "outcome", "s"], outcomes), end="")


if __name__ == "__main__":
    main()
