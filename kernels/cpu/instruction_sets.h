// The instruction sets the kernels can be held to, so that tests reach each of them on one machine.
#pragma once

#include <string>
#include <vector>

namespace memwall::cpu {

// The sets compiled in that this machine has, the best first, by instruction_set()'s names.
std::vector<std::string> instruction_sets();

// Every kernel uses that set from now on; "" gives the choice back. Not to be called while kernels run.
// Throws std::invalid_argument where instruction_sets() does not list it.
void use_instruction_set(const std::string& name);

// The best set that the kernels use at present, e.g. "AVX3".
std::string instruction_set();

}  // namespace memwall::cpu
