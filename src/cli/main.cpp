// The one place that prints errors and decides the exit status.
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.h"
#include "cli/standard_streams.h"
#include "input/error.h"
#include "input/printable.h"

namespace {

// An error is one line, whatever a file's name or content holds.
void print_error(std::string_view message) {
  std::fprintf(stderr, "memwall: error: %s\n", memwall::printable(message).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  memwall::secure_standard_streams();
  try {
    return memwall::run_command_line(std::vector<std::string>(argv, argv + argc));
  } catch (const memwall::InputError& error) {
    print_error(error.what());
    return 2;
  } catch (
      const std::overflow_error& error) {  // sizes of the input that multiply to more than can be counted
    print_error(error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    print_error("out of memory: this machine, or a limit on this process (ulimit -v), has no more to give");
    return 1;
  } catch (const std::exception& error) {
    print_error(error.what());
    return 1;
  }
}
