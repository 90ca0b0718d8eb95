#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/facts/activation.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Whether a job would find the program of the request even without its environment.
bool has_program_outside(const Host& host, const wire::FactsRequest& request);

// Parses the output of `mpirun --version`; nullopt if mpirun is missing or unknown.
std::optional<wire::MpiFacts> read_mpi(const Activation& activation);

}  // namespace remote::agent
