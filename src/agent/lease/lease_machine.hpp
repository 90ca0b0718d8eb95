#pragma once

#include <string>
#include <vector>

#include <remote/gpu.hpp>

#include "agent/host/host.hpp"
#include "agent/lease/lease_files.hpp"
#include "rules/leases.hpp"
#include "wire/leases.hpp"

// The resources of this server that can be leased.

namespace remote::agent {

// The GPU driver does not respond, which may be temporary.
struct DriverFails : LeaseRefused {
  using LeaseRefused::LeaseRefused;
};

struct LeaseMachine {
  rules::LeaseMachine resources;  // only the kinds that are needed
  GpuVendor vendor = GpuVendor::nvidia;
  std::size_t server_gpus = 0;            // including those that a user's variable hides
  std::string hiding_variable{};          // "CUDA_VISIBLE_DEVICES"; "": no variable hides any
  std::vector<VisibleDevices> visible{};  // the user's variables
};

rules::LeaseNeeds to_needs(const wire::LeaseTerms& terms);

// Asks the driver for the GPUs, which can take a second. Returns those of the first vendor that has any.
// Throws LeaseRefused, DriverFails and CannotStart. `prologue`: see wire::LeaseTerms.
LeaseMachine read_lease_machine(const Host& host, const rules::LeaseNeeds& needs,
                                const std::string& prologue = {});
void read_available_memory(const Host& host, rules::LeaseMachine& machine);

// Lines NAME=VALUE, sorted. With these variables, programs see only these GPUs of the machine.
std::string to_gpu_variables(const LeaseMachine& machine, const std::vector<rules::LeaseMachine::Gpu>& gpus);
// "0,2"
std::string join_indices(const std::vector<rules::LeaseMachine::Gpu>& gpus);

}  // namespace remote::agent
