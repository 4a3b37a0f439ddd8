#include <cstdint>
#include <stdexcept>
#include <string>

#include "fuzz/targets.h"
#include "huggingface/read_config.h"
#include "input/error.h"
#include "input/json.h"

namespace memwall {

// A configuration gives a model whose sums fit, or is refused with an InputError.
int fuzz_config(const std::uint8_t* data, std::size_t size) {
  try {
    const Model model = model_from_config(json::parse(std::string(data, data + size), "config.json"), "fuzz");
    if (count_parameters(model).total < 1 || read_bytes(model) < 1)
      throw std::logic_error("a model without parameters");
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace memwall
