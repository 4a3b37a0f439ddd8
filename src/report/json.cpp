#include "report/json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>

namespace memwall {

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::floor(value) == value && std::abs(value) <= kExact) return static_cast<std::int64_t>(value);
  return value;
}

Circumstances circumstances_now(const std::vector<std::string>& arguments) {
  Circumstances now;
  now.version = MEMWALL_VERSION;
  now.command = fmt::format("{}", fmt::join(arguments, " "));
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  now.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
  return now;
}

Json document(std::string_view command, const Circumstances& circumstances) {
  Json json;
  json["schema"] = fmt::format("memwall.{}/1", command);
  json["memwall"] = {
      {"version", circumstances.version}, {"command", circumstances.command}, {"time", circumstances.time}};
  return json;
}

}  // namespace memwall
