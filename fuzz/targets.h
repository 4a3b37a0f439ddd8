// The readers of files that strangers wrote, as libFuzzer calls them. Each takes any bytes; whatever it does
// but return is a finding. A target NAME is fuzz_NAME() below, defined in fuzz/NAME_target.cpp, with its
// seeds in fuzz/corpus/NAME/; tests/fuzz/replay_test.cpp lists them too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memwall {

int fuzz_config(const std::uint8_t* data, std::size_t size);
int fuzz_gguf(const std::uint8_t* data, std::size_t size);
int fuzz_json(const std::uint8_t* data, std::size_t size);
int fuzz_safetensors(const std::uint8_t* data, std::size_t size);

}  // namespace memwall
