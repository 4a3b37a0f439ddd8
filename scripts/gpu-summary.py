#!/usr/bin/env python3
"""One page of Markdown from what gpu-check.sh left in a folder: python3 gpu-summary.py FOLDER"""

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


def tera(giga):
    return None if giga is None else giga / 1e3


def percent(value):
    return "" if value is None else f"{100 * value:.0f} %"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in cells]) + "\n"


def devices(found):
    rows = [
        (d["device"], d["name"], d.get("compute_capability", d.get("instruction_set")), number(d.get("peak_GBps")),
         d.get("card") or "")
        for d in found["devices"]
    ]
    cuda = found["cuda"]
    text = f"memwall {found['memwall']['version']}, {found['memwall']['time']}\n\n"
    text += table(["device", "name", "architecture", "peak GB/s", "card"], rows)
    if not cuda["available"]:
        return text + f"\nNo GPU: {cuda['why_not']}\n"
    libraries = [f"{name} {cuda[key]}" for name, key in (("cuBLAS", "cublas"), ("cuBLASLt", "cublasLt")) if cuda.get(key)]
    return text + f"\nCUDA {cuda['runtime']}, {', '.join(libraries) or 'no cuBLAS'}\n"


def ceilings(found):
    """What the device itself was found to reach: everything below is held against this."""
    device = found["device"]
    rows = [(s["pattern"], s["stores"] or "", number(s["GBps"])) for s in device.get("streams", [])]
    text = "## Ceilings\n\n" + table(["pattern", "stores", "GB/s"], rows)
    gpu, launch = device.get("gpu"), device.get("launch")
    if device.get("read_GBps"):
        text += f"\nread: {number(device['read_GBps'])} GB/s"
        if device.get("read_variant"):
            text += f" by {device['read_variant']}"
        if gpu and gpu.get("card_GBps"):
            text += f", {percent(gpu['read_of_card'])} of the {number(gpu['card_GBps'])} GB/s of {gpu['card']}"
            text += f" ({gpu['card_from']})"
        text += "\n"
    if launch:
        text += f"\na launch: {number(launch['t0_us'], 3)} us beside {number(launch['GBps'])} GB/s\n"
    rows = [(kind, number(tera(p.get("GFLOPs"))), number(tera(p.get("median_GFLOPs"))), p.get("by") or "")
            for kind, p in (device.get("peaks") or {}).items()]
    if rows:
        text += "\n" + table(["peak", "TFLOP/s", "median", "by"], rows)
    rows = [(b["kernel"], b["format"], b["n"], number(b["ms"]), number(b["GBps"]), number(b["TFLOPs"]))
            for b in (found.get("baselines") or {}).get("all", [])]
    if rows:
        text += "\n" + table(["baseline", "format", "n", "ms", "GB/s", "TFLOP/s"], rows)
    if gpu and gpu.get("clocks_unknown"):
        text += f"\nclocks are not known: {gpu['clocks_unknown']}\n"
    return text


def steps(found):
    rows = []
    for run in found["decode"]:
        parts, whole = run["measured"], run["measured"].get("step")
        note = parts.get("step_failed") or ""
        if parts.get("partial"):
            note = "partial" + (f"; {note}" if note else "")
        rows.append(
            (run["weights"], run["context"], run["batch"], number(parts["ms_per_step"]),
             number(whole and whole["ms_per_step"]), number(whole and whole["tokens_per_s"]),
             number(whole and whole["GBps"]), percent(whole and whole["of_read_bandwidth"]), note))
    return rows


def op_cell(op):
    if op.get("not_measured"):
        return f"not measured: {op['why']}" if op.get("why") else "not measured"
    if op.get("of_read_bandwidth") is None:
        return None
    cell = f"{percent(op['of_read_bandwidth'])} {op['variant']}"
    if op.get("of_same_size_read") is not None:
        cell += f", {percent(op['of_same_size_read'])} of a read its size"
    if op.get("slowed", {}).get("samples"):
        cell += f", slowed by {' and '.join(op['slowed']['by'])}"
    return cell


def ops(found):
    """The ops that read weights or cache, at each batch: the kernel used and its share of the read bandwidth."""
    rows = {}
    for run in found["decode"]:
        for op in run["ops"]:
            cell = op_cell(op)
            if cell is not None:
                rows.setdefault((run["weights"], run["context"], op["name"]), {})[run["batch"]] = cell
    batches = sorted({run["batch"] for run in found["decode"]})
    return [(*key, *(cells.get(b, "") for b in batches)) for key, cells in rows.items()], batches


def failures(found):
    """Each way to run an op that failed, once, with the first of its places."""
    reasons = {}
    for run in found["decode"]:
        for op in run["ops"]:
            for variant in op.get("variants") or []:
                if variant.get("failed"):
                    place = f"{op['name']}, {run['weights']}, batch {run['batch']}, context {run['context']}"
                    reasons.setdefault((variant["name"], variant["failed"]), []).append(place)
    return [(name, why, places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else ""))
            for (name, why), places in reasons.items()]


def decode(found):
    text = f"## {found['model']['title']}, decode\n\n"
    if found.get("incomplete"):
        text += "The run was stopped: what was measured until then.\n\n"
    return text + table(
        ["weights", "context", "batch", "sum of parts, ms", "step, ms", "tokens/s", "GB/s", "of read", ""], steps(found))


def shares(found):
    rows, batches = ops(found)
    return "Each op's share of the read bandwidth, and the kernel that reached it:\n\n" + table(
        ["weights", "context", "op", *(f"batch {b}" for b in batches)], rows)


def left_out(found):
    rows = failures(found)
    return "Ways that failed, and are left out:\n\n" + table(["way", "why", "where"], rows) if rows else ""


def warnings(found):
    return "".join(f"- {w}\n" for w in found.get("warnings") or [])


def section(make, found):
    """A section's text. What a run left behind when it was stopped may lack anything."""
    try:
        return make(found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"{make.__name__} cannot be shown: {type(error).__name__}: {error}\n"


def main():
    folder = Path(sys.argv[1])
    outcomes = [line.split("\t") for line in (folder / "steps.tsv").read_text(encoding="utf-8").splitlines()]
    sections = ["# GPU check\n", table(["step", "outcome", "s"], outcomes)]
    found = load(folder / "devices.json")
    if found:
        sections += [section(devices, found)]
    found = load(folder / "measure.json")
    if found:
        sections += [section(make, found) for make in (ceilings, decode, shares, left_out, warnings)]
    print("\n".join(text for text in sections if text), end="")


if __name__ == "__main__":
    main()
