// The one place that prints errors and decides the exit status.
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/standard_streams.h"
#include "input/error.h"

namespace {

// An error is one line, whatever a file's name or content holds.
void print_error(std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  std::fprintf(stderr, "memwall: error: %s\n", message.c_str());
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
