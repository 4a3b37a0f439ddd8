#!/usr/bin/env python3
"""Bytes of quantised checkpoints, counted without memwall: quantised_bytes.csv beside this script.

    count_bytes.py CONFIGS >quantised_bytes.csv

CONFIGS is a folder of config.json files; those with a quantisation are counted. Needs transformers 5.24, torch and
compressed-tensors 0.20 (pip), no weights and no network.

Shapes and names are those of transformers' own classes, made on the meta device; fused experts are taken apart into
the linears that checkpoints hold. Which of them a configuration quantises is asked of the method's own library:
transformers' should_convert_module, compressed-tensors' is_match, fnmatch for ModelOpt, a text inside the name for
AutoAWQ. What one takes follows its library's buffers:

    fp8            1 byte a weight; an f32 scale a tensor, or a 128 x 128 block (DeepSeek-V4: 8 bits)
    f8 channel     compressed-tensors: 1 byte, a scale of the model's type a row, or a block
    nvfp4          4 bits, an 8-bit scale for 16, an f32 a tensor
    mxfp4          4 bits, an 8-bit scale for 32
    gptq, awq      qweight, qzeros (int32, packed), f16 scales a group; with desc_act g_idx, an int32 an input
    nf4            4 bits, an f32 for 64
    mlx            packed integers, a 16-bit scale and bias a group

Everything else has the configuration's dtype. "read" is what a batch-1 step reads: all but the untied embedding, and
of the routed experts as many as a token is sent to. Scales of activations and shapes are not counted.
"""
import copy
import fnmatch
import glob
import json
import logging
import math
import os
import re
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
logging.disable(logging.WARNING)

import torch  # noqa: E402
import transformers  # noqa: E402
from compressed_tensors.utils.match import match_name  # noqa: E402
from transformers.quantizers.quantizers_utils import should_convert_module  # noqa: E402


def text_model(config):
    """The language model on the meta device, and its configuration."""
    config = copy.deepcopy(config)
    for key in ("quantization_config", "quantization", "auto_map"):
        config.pop(key, None)
    kind = config.pop("model_type")
    # Configurations of remote code that is another class's in all but the name.
    kind = {"kimi_k2": "deepseek_v3", "deepseek_ref": "deepseek_v4"}.get(kind, kind)
    if kind == "molmo":  # allenai/Molmo's code: Qwen2's decoder, gate and up of intermediate_size together
        config["intermediate_size"] //= 2
        kind = "qwen2"
    text = transformers.AutoConfig.for_model(kind, **config).get_text_config()
    if text.model_type in ("qwen2_vl_text", "qwen2_5_omni_text"):  # Qwen2's decoder under another name
        keys = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                "num_key_value_heads", "vocab_size", "tie_word_embeddings")
        given = {key: getattr(text, key) for key in keys if hasattr(text, key)}
        given["tie_word_embeddings"] = config.get("tie_word_embeddings", False)
        text = transformers.Qwen2Config(**given)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(text)
    return model, text


class Weight:
    """A matrix that a checkpoint holds `copies` of, `read` of which a token reads."""

    def __init__(self, name, out, columns, copies=1, read=1):
        self.name, self.out, self.columns, self.copies, self.read = name, out, columns, copies, read


def weights_of(model, text):
    """The linears, and elements of what is stored and read besides; the embedding's apart."""
    experts_per_token = getattr(text, "num_experts_per_tok", None) or getattr(text, "top_k_experts", None)
    linears, rest, embedding = [], 0, 0
    of_linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    for name, tensor in model.named_parameters():
        module, _, part = name.rpartition(".")
        if module.endswith(".experts") and tensor.dim() == 3:
            count = tensor.shape[0]
            hidden = text.hidden_size
            if getattr(text, "moe_latent_size", None):
                hidden = text.moe_latent_size
            wide = tensor.numel() // count // hidden
            names = {"gate_up_proj": ("gate_proj", "up_proj")}.get(part, (part,))
            for one in names:
                shape = (hidden, wide) if one == "down_proj" else (wide // len(names), hidden)
                linears.append(Weight(f"{module}.0.{one}", *shape, count, experts_per_token))
        elif module.endswith(".experts"):  # biases, one an expert
            share = experts_per_token / tensor.shape[0]
            linears.append(Weight(f"{module}.{part}", tensor.shape[0], 0))
            rest_read = tensor.numel() * share
            linears[-1].elements, linears[-1].elements_read = tensor.numel(), int(rest_read)
        elif module in of_linear and part == "weight" and not (tied and module == "lm_head"):
            linears.append(Weight(module, *tensor.shape))
        elif tensor is model.get_input_embeddings().weight:
            embedding = tensor.numel()
        else:
            rest += tensor.numel()
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            rest += buffer.numel()
    return linears, rest, embedding, tied


def ceil(a, b):
    return -(-a // b)


# Bytes of an out x columns matrix.
def f8_tensor(out, columns):
    return out * columns + 4


def f8_blocks(scale):
    return lambda out, columns: out * columns + scale * ceil(out, 128) * ceil(columns, 128)


def f8_rows(scale):
    return lambda out, columns: out * columns + scale * out


def nvfp4(out, columns):
    return out * (columns // 2) + out * ceil(columns, 16) + 4


def mxfp4(out, columns):
    return out * (columns // 2) + out * ceil(columns, 32)


def nf4(out, columns):
    return ceil(out * columns, 2) + 4 * ceil(out * columns, 64)


def packed(bits, group, order):
    """GPTQ and AWQ: int32 words of `bits`, zero points packed along the outputs."""

    def count(out, columns):
        groups = 1 if group <= 0 else ceil(columns, group)
        qweight = 4 * (columns * bits // 32) * out
        qzeros = 4 * groups * (out * bits // 32)
        return qweight + qzeros + 2 * groups * out + (4 * columns if order else 0)

    return count


def mlx(bits, group):
    return lambda out, columns: out * columns * bits // 8 + 4 * out * (columns // group)


# Names that lists use where they are not transformers'.
def deepseek_v4_names(name):
    """As DeepSeek's checkpoint and vLLM have them (attn.wq_b, ffn.experts), and as compressed-tensors' targets do."""
    name = name.removeprefix("model.").replace(".self_attn.", ".attn.").replace(".mlp.", ".ffn.")
    for ours, theirs in (("compressor.indexer.", "indexer."), ("attn.q_a_proj", "attn.fused_wqa_wkv"),
                         ("attn.kv_proj", "attn.fused_wqa_wkv"), ("q_b_proj", "wq_b"), ("o_a_proj", "wo_a"),
                         ("o_b_proj", "wo_b")):
        name = name.replace(ours, theirs)
    if "compressor" in name or name.endswith(("indexer.kv_proj", "indexer.gate_proj")):
        name = re.sub(r"\.(kv|gate)_proj$", ".fused_wkv_wgate", name)
    return name


def rename(prefix="model.", to="model.", *pairs):
    def one(name):
        if name.startswith(prefix):
            name = to + name[len(prefix):]
        for ours, theirs in pairs:
            name = name.replace(ours, theirs)
        if to != "model." and name == "lm_head" and to.startswith("language_model."):
            return "language_model.lm_head"
        return name

    return one


def names_for(config):
    kind = config["model_type"]
    if kind in ("deepseek_v4", "deepseek_ref"):
        return deepseek_v4_names
    if kind == "kimi_k25":
        return rename("model.", "language_model.model.")
    if kind in ("qwen3_5_moe", "qwen3_5", "mistral3", "llama4", "minicpmv4_6"):
        return rename("model.", "language_model.model." if kind == "llama4" else "model.language_model.")
    if kind == "nemotron_h":
        return rename("model.", "backbone.")
    if kind == "molmo":
        return rename("model.", "model.transformer.", ("layers.", "blocks."), ("lm_head", "model.transformer.ff_out"))
    if kind == "minimax_m2":
        return rename("model.", "model.", (".mlp.", ".block_sparse_moe."))
    return lambda name: name


KEPT_BY_DEEPSEEK = ("indexer.weights_proj", "scorer.weights_proj", "compressor.kv_proj", "compressor.gate_proj",
                    "indexer.kv_proj", "indexer.gate_proj")


def is_expert(weight):
    return ".experts." in weight.name


def modelopt_algorithm(settings):
    bits = settings["num_bits"]
    return f8_tensor if bits == 8 else nvfp4


def method_of(config):
    """A function from (weight, its name in lists) to the function that counts its bytes, or None; and its words."""
    q = config.get("quantization_config") or config["quantization"]
    method = q.get("quant_method", "modelopt" if "quant_algo" in q else "mlx")
    kind = config["model_type"]
    if method == "mxfp4":
        return lambda w, n: mxfp4 if is_expert(w) else None, "transformers mxfp4: experts alone"
    if method == "fp8":
        kept = list(q.get("modules_to_not_convert") or ["lm_head"])
        v4 = kind in ("deepseek_v4", "deepseek_ref")
        sparse = v4 or kind in ("deepseek_v32", "glm_moe_dsa")
        blocks = q.get("weight_block_size")
        dense = f8_tensor if blocks is None else f8_blocks(1 if v4 else 4)
        fp4 = config.get("expert_dtype") == "fp4"

        def fp8(w, name):
            if sparse and w.name.endswith(KEPT_BY_DEEPSEEK):
                return None
            if w.name == "lm_head" or not should_convert_module(name, kept):
                return None
            return mxfp4 if fp4 and is_expert(w) else dense

        return fp8, "transformers FineGrainedFP8, should_convert_module"
    if method == "compressed-tensors":
        dtype = 2
        rules = []
        for group in q["config_groups"].values():
            w = group["weights"]
            form = {("float", 8, "channel"): f8_rows(dtype), ("float", 8, "block"): f8_blocks(dtype),
                    ("float", 4, "tensor_group"): nvfp4}[(w["type"], w["num_bits"], w["strategy"])]
            rules.append((group["targets"], form))

        def compressed(w, name):
            if w.name == "lm_head" or w.name.endswith(("mlp.gate", "feed_forward.router")):
                return None
            if any(match_name(name, ignored) for ignored in q.get("ignore") or []):
                return None
            for targets, form in rules:
                if any(match_name(name, target) or target == "Linear" for target in targets):
                    return form
            return None

        return compressed, "compressed-tensors 0.20.1: match_name, buffers of its compressors"
    if method == "modelopt":
        ignore = q.get("ignore", [])
        by_name, rest = {}, None
        for group in q["config_groups"].values():
            form = modelopt_algorithm(group["weights"])
            for target in group.get("targets", ["Linear"]):
                if target == "Linear":
                    rest = form
                else:
                    by_name[target] = form
        mixed = q.get("quant_algo") == "MIXED_PRECISION"

        def modelopt(w, name):
            parts = name.split(".")
            prefixes = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
            if any(fnmatch.fnmatchcase(prefix, pattern) for pattern in ignore for prefix in prefixes):
                return None
            named = [by_name[prefix] for prefix in prefixes if prefix in by_name]
            if named:
                return named[-1]
            if w.name == "lm_head" or w.name.endswith(("mlp.gate", "mixer.gate", "shared_expert_gate")):
                return None
            return None if mixed else rest

        return modelopt, "ModelOpt: config_groups and ignore by fnmatch"
    if method in ("awq", "gptq"):
        form = packed(q["bits"], q["group_size"], method == "gptq" and q.get("desc_act", False))
        kept = q.get("modules_to_not_convert") or []

        def groups(w, name):
            return None if w.name == "lm_head" or any(part in name for part in kept) else form

        return groups, f"{method}: QuantLinear's buffers"
    if method == "bitsandbytes":
        kept = q["llm_int8_skip_modules"]
        return lambda w, n: nf4 if should_convert_module(n, kept) else None, "bitsandbytes: should_convert_module"
    if method == "mlx":
        return lambda w, n: mlx(q["bits"], q["group_size"]), "mlx-lm: every matrix, tables too"
    raise SystemExit(f"no method for {method}")


def count(config):
    form_of, words = method_of(config)
    model, text = text_model(config)
    linears, rest, embedding, tied = weights_of(model, text)
    name_of = names_for(config)
    is_mlx = words.startswith("mlx")
    stored = read = 2 * rest
    table = Weight("model.embed_tokens", model.get_input_embeddings().weight.shape[0],
                   model.get_input_embeddings().weight.shape[1])
    table_bytes = form_of(table, "")(table.out, table.columns) if is_mlx else 2 * embedding
    stored += table_bytes
    read += table_bytes if tied else 0
    for w in linears:
        if w.columns == 0:
            stored += 2 * w.elements
            read += 2 * w.elements_read
            continue
        form = form_of(w, name_of(w.name))
        one = form(w.out, w.columns) if form else 2 * w.out * w.columns
        stored += one * w.copies
        read += one * w.read
    return stored, read, words


def main():
    print("config,stored,read,method")
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
        with open(path) as file:
            config = json.load(file)
        if not (config.get("quantization_config") or config.get("quantization")):
            continue
        stored, read, words = count(config)
        print(f'{os.path.basename(path)},{stored},{read},"{words}"', flush=True)


if __name__ == "__main__":
    main()
