// Formats told from the tensors of quantised weights, and their bytes.
#include <algorithm>
#include <filesystem>

#include "load/load_model.h"
#include "paths.h"
#include "tests/load/safetensors_support.h"

namespace memwall {
namespace {

struct Stored {
  const char* format;
  void (*add)(SafetensorsWriter&, const std::string&, std::int64_t, std::int64_t);
};

void PrintTo(const Stored& stored, std::ostream* out) { *out << stored.format; }

void gptq(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".qweight", "I32", {in / 8, out})
      .add(module + ".qzeros", "I32", {in / 32, out / 8})
      .add(module + ".scales", "F16", {in / 32, out})
      .add(module + ".g_idx", "I32", {in})
      .add(module + ".bias", "F16", {out});  // AutoGPTQ stores zeros
}

void gptq_3bit(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".qweight", "I32", {in * 3 / 32, out})
      .add(module + ".qzeros", "I32", {1, out * 3 / 32})
      .add(module + ".scales", "F16", {1, out});
}

void awq(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".qweight", "I32", {in, out / 8})
      .add(module + ".qzeros", "I32", {in / 32, out / 8})
      .add(module + ".scales", "F16", {in / 32, out});
}

template <int bits>
void packed(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight_packed", "I32", {out, in * bits / 32})
      .add(module + ".weight_scale", "BF16", {out, in / 32})
      .add(module + ".weight_shape", "I64", {2});
}

void packed_zero_points(SafetensorsWriter& file, const std::string& module, std::int64_t out,
                        std::int64_t in) {
  packed<4>(file, module, out, in);
  file.add(module + ".weight_zero_point", "I32", {out / 8, in / 32});
}

void f8(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "F8_E4M3", {out, in})
      .add(module + ".weight_scale", "F32", {})
      .add(module + ".input_scale", "F32", {})
      .add(module + ".k_scale", "F32", {});
}

void f8_rows(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "F8_E4M3", {out, in}).add(module + ".weight_scale", "BF16", {out, 1});
}

void mxfp8(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "F8_E4M3", {out, in}).add(module + ".weight_scale", "F8_E8M0", {out, in / 32});
}

void int8_rows(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "I8", {out, in}).add(module + ".weight_scale", "F32", {out, 1});
}

void llm_int8(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "I8", {out, in})
      .add(module + ".SCB", "F32", {out})
      .add(module + ".weight_format", "U8", {});
}

void nf4(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "U8", {out * in / 2, 1})
      .add(module + ".weight.absmax", "F32", {out * in / 64})
      .add(module + ".weight.quant_map", "F32", {16})
      .add(module + ".weight.quant_state.bitsandbytes__nf4", "U8", {79});
}

void nf4_dq(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "U8", {out * in / 2, 1})
      .add(module + ".weight.absmax", "U8", {out * in / 64})
      .add(module + ".weight.nested_absmax", "F32", {1})
      .add(module + ".weight.nested_quant_map", "F32", {256})
      .add(module + ".weight.quant_map", "F32", {16})
      .add(module + ".weight.quant_state.bitsandbytes__nf4", "U8", {90});
}

void nvfp4(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "U8", {out, in / 2})
      .add(module + ".weight_scale", "F8_E4M3", {out, in / 16})
      .add(module + ".weight_scale_2", "F32", {})
      .add(module + ".input_scale", "F32", {});
}

void nvfp4_packed(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight_packed", "U8", {out, in / 2})
      .add(module + ".weight_scale", "F8_E4M3", {out, in / 16})
      .add(module + ".weight_global_scale", "F32", {1})
      .add(module + ".input_global_scale", "F32", {1});
}

void mlx(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "U32", {out, in / 8})
      .add(module + ".scales", "BF16", {out, in / 32})
      .add(module + ".biases", "BF16", {out, in / 32});
}

void bitnet(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".weight", "U8", {out / 4, in}).add(module + ".weight_scale", "BF16", {1});
}

void hqq(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + ".W_q", "U8", {out / 2, in})
      .add(module + ".scale", "F16", {out * in / 64, 1})
      .add(module + ".zero", "F16", {out * in / 64, 1})
      .add(module + ".nbits", "I32", {1});
}

// torchao's tensor subclasses as transformers 5.24 saves them: their parts' names joined to the weight's.
void torchao_int8(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + "._weight_qdata", "I8", {out, in})
      .add(module + "._weight_scale", "F32", {out, 1})
      .add(module + "._weight_zero_point", "I8", {out, 1});
}

void torchao_f8(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + "._weight_qdata", "F8_E4M3", {out, in}).add(module + "._weight_scale", "F32", {out, 1});
}

void torchao_int4(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + "._weight_qdata", "U8", {out, in / 2})
      .add(module + "._weight_scale", "BF16", {in / 32, out})
      .add(module + "._weight_zero_point", "BF16", {in / 32, out});
}

void torchao_tiles(SafetensorsWriter& file, const std::string& module, std::int64_t out, std::int64_t in) {
  file.add(module + "._weight_qdata", "I32", {out / 8, in / 64, 32, 2})
      .add(module + "._weight_scale_and_zero", "BF16", {in / 32, out, 2});
}

class Quantised : public ::testing::TestWithParam<Stored> {};

TEST_P(Quantised, FormatAndBytes) {
  SafetensorsWriter file;
  add_llama_linears(file, GetParam().add);
  add_llama_rest(file);
  const Model model = bind_exactly(llama_config(), file);
  EXPECT_EQ(format_name(model.weights), GetParam().format);
  EXPECT_EQ(format_name(model.head), "bf16");
  EXPECT_EQ(model.warnings, std::vector<std::string>());
  EXPECT_FALSE(model.approximate);

  SafetensorsWriter one;  // up_proj by itself
  GetParam().add(one, "up", 128, 64);
  const Tensor up = tensor_of(model, BlockKind::mlp, "up_proj");
  const Block& mlp = *block_of(model, BlockKind::mlp);
  const Tensor* bias = mlp.find("up_proj.bias");
  EXPECT_EQ(up.bytes() + (bias != nullptr ? bias->bytes() : 0), one.data_bytes());
  EXPECT_EQ(up.out, 128);
  EXPECT_EQ(up.in, 64);
  EXPECT_EQ(mlp.layers.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(
    All, Quantised,
    ::testing::Values(Stored{"int4-g32-zp", gptq}, Stored{"int3-c-zp", gptq_3bit}, Stored{"int4-g32-zp", awq},
                      Stored{"int4-g32", packed<4>}, Stored{"int8-g32", packed<8>},
                      Stored{"int4-g32-zp", packed_zero_points}, Stored{"f8_e4m3", f8},
                      Stored{"f8_e4m3-c", f8_rows}, Stored{"mxfp8", mxfp8}, Stored{"int8-c", int8_rows},
                      Stored{"int8-c", llm_int8}, Stored{"nf4", nf4}, Stored{"nf4-dq", nf4_dq},
                      Stored{"nvfp4", nvfp4}, Stored{"nvfp4", nvfp4_packed}, Stored{"int4-g32-zp16", mlx},
                      Stored{"int2-c", bitnet}, Stored{"int4-g64-zp16", hqq},
                      Stored{"int8-c-zp", torchao_int8}, Stored{"f8_e4m3-c", torchao_f8},
                      Stored{"int4-g32-zp16", torchao_int4}, Stored{"int4-g32-zp16", torchao_tiles}));

// A checkpoint that transformers saved: no scale is a parameter.
TEST(QuantisedCheckpoint, RealTorchao) {
  const std::string folder = MEMWALL_SOURCE_DIR "/../shared/data/trials/configs/safetensors-torchao-int8";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data";
  const Model model = find_model(folder);
  EXPECT_EQ(count_parameters(model).total, 90'432);
  EXPECT_EQ(stored_bytes(model), 112'256);
  EXPECT_EQ(stored_bytes(load_config(folder + "/config.json")), 112'256);
  EXPECT_TRUE(model.warnings.empty());
}

TEST(QuantisedCheckpoint, BytesOfTheFormatNeedNoStoredBytes) {
  SafetensorsWriter file;
  add_llama_linears(file, awq);
  add_llama_rest(file);
  EXPECT_EQ(tensor_of(bind_exactly(llama_config(), file), BlockKind::mlp, "up_proj").stored_bytes, -1);
}

// DeepSeek-V3's layout: tiles of 128, and a layer behind the last for multi-token prediction.
TEST(QuantisedCheckpoint, TilesAndNextTokenLayer) {
  const std::string config = R"({"model_type":"llama","hidden_size":256,"num_hidden_layers":1,
    "num_attention_heads":4,"intermediate_size":320,"vocab_size":512,"num_nextn_predict_layers":1,
    "tie_word_embeddings":false})";
  SafetensorsWriter file;
  const auto tiles = [&](const std::string& module, std::int64_t out, std::int64_t in) {
    file.add(module + ".weight", "F8_E4M3", {out, in})
        .add(module + ".weight_scale_inv", "F32", {(out + 127) / 128, (in + 127) / 128});
  };
  std::int64_t before = 0;
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    before = file.data_bytes();
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"})
      tiles(layer + name, 256, 256);
    tiles(layer + "mlp.gate_proj", 320, 256);
    tiles(layer + "mlp.up_proj", 320, 256);
    tiles(layer + "mlp.down_proj", 256, 320);
    file.add(layer + "input_layernorm.weight", "BF16", {256});
    file.add(layer + "post_attention_layernorm.weight", "BF16", {256});
  }
  file.add("model.layers.1.eh_proj.weight", "BF16", {256, 512});
  const std::int64_t extra = file.data_bytes() - before;
  file.add("model.embed_tokens.weight", "BF16", {512, 256}).add("lm_head.weight", "BF16", {512, 256});
  file.add("model.norm.weight", "BF16", {256});
  const Model model = bind_exactly(config, file);
  EXPECT_EQ(format_name(model.weights), "f8_e4m3-b128");
  EXPECT_EQ(tensor_of(model, BlockKind::mlp, "down_proj").stored_bytes, -1);
  ASSERT_EQ(model.extras.size(), 1U);
  EXPECT_EQ(model.extras.front().what, "1 multi-token-prediction layer");
  EXPECT_EQ(model.extras.front().bytes, extra);
  EXPECT_EQ(model.extras.front().tensors, 17);
}

TEST(QuantisedCheckpoint, LayersOfDifferentFormats) {
  SafetensorsWriter file;
  add_llama_linears(file,
                    [](SafetensorsWriter& f, const std::string& module, std::int64_t out, std::int64_t in) {
                      (module.starts_with("model.layers.0.") ? awq : add_plain)(f, module, out, in);
                    });
  add_llama_rest(file);
  const Model model = bind_exactly(llama_config(), file);
  EXPECT_EQ(format_name(tensor_of(model, BlockKind::mlp, "up_proj", 0).format), "int4-g32-zp");
  EXPECT_EQ(format_name(tensor_of(model, BlockKind::mlp, "up_proj", 1).format), "bf16");
  EXPECT_EQ(format_name(model.weights), "bf16");
}

const char* const kGptOss = R"({"model_type":"gpt_oss","hidden_size":64,"num_hidden_layers":2,"head_dim":16,
  "num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,"vocab_size":256,
  "num_local_experts":8,"num_experts_per_tok":2,"tie_word_embeddings":false,"dtype":"bfloat16",
  "layer_types":["sliding_attention","full_attention"],"sliding_window":128})";

SafetensorsWriter gpt_oss(bool quantised) {
  SafetensorsWriter file;
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const auto& [name, out] :
         {std::pair{"q_proj", 64}, {"k_proj", 32}, {"v_proj", 32}, {"o_proj", 64}}) {
      file.add(layer + "self_attn." + name + ".weight", "BF16", {out, 64});
      file.add(layer + "self_attn." + name + ".bias", "BF16", {out});
    }
    file.add(layer + "self_attn.sinks", "BF16", {4});
    file.add(layer + "input_layernorm.weight", "BF16", {64});
    file.add(layer + "post_attention_layernorm.weight", "BF16", {64});
    file.add(layer + "mlp.router.weight", "BF16", {8, 64}).add(layer + "mlp.router.bias", "BF16", {8});
    const std::string experts = layer + "mlp.experts.";
    file.add(experts + "gate_up_proj_bias", "BF16", {8, 192})
        .add(experts + "down_proj_bias", "BF16", {8, 64});
    if (quantised) {
      file.add(experts + "gate_up_proj_blocks", "U8", {8, 192, 2, 16});
      file.add(experts + "gate_up_proj_scales", "U8", {8, 192, 2});
      file.add(experts + "down_proj_blocks", "U8", {8, 64, 3, 16});
      file.add(experts + "down_proj_scales", "U8", {8, 64, 3});
    } else {
      file.add(experts + "gate_up_proj", "BF16", {8, 64, 192})
          .add(experts + "down_proj", "BF16", {8, 96, 64});
    }
  }
  file.add("model.embed_tokens.weight", "BF16", {256, 64}).add("model.norm.weight", "BF16", {64});
  return file.add("lm_head.weight", "BF16", {256, 64});
}

TEST(QuantisedCheckpoint, GptOss) {
  const Model model = bind_exactly(kGptOss, gpt_oss(true));
  const Tensor fused = tensor_of(model, BlockKind::moe, "experts.gate_up_proj");
  EXPECT_EQ(format_name(fused.format), "mxfp4");
  EXPECT_EQ(fused.stored_bytes, -1);
  EXPECT_EQ(fused.copies, 8);
  EXPECT_EQ(tensor_of(model, BlockKind::moe, "experts.gate_up_proj.bias").bytes(), 8 * 192 * 2);
  EXPECT_EQ(format_name(model.weights), "mxfp4");
  EXPECT_EQ(all_warnings(model), "");
  EXPECT_EQ(format_name(bind_exactly(kGptOss, gpt_oss(false)).weights), "bf16");
}

}  // namespace
}  // namespace memwall
