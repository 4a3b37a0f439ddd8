// Outcomes and what a device is, as bytes between two processes of the same program.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/device.h"
#include "bench/ledger.h"

namespace memwall {

// Exact both ways, infinities included, where the bytes are a binary form of JSON (CBOR).
nlohmann::json record_of(const Outcome& outcome);
nlohmann::json record_of(const DeviceInfo& info);
// Throw nlohmann::json::exception for what record_of did not make.
Outcome outcome_of(const nlohmann::json& record);
DeviceInfo device_info_of(const nlohmann::json& record);

}  // namespace memwall
