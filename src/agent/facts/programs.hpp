#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/facts/activation.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Whether a job finds the program of the request even if its environment were not entered.
bool has_program_outside(const Host& host, const wire::FactsRequest& request);

// mpirun, by what `mpirun --version` prints; nullopt if it is missing or unknown.
std::optional<wire::MpiFacts> read_mpi(const Activation& activation);

}  // namespace remote::agent
