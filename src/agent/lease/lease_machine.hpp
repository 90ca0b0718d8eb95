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

// The driver of the GPUs does not answer, which may change.
struct DriverFails : LeaseRefused {
  using LeaseRefused::LeaseRefused;
};

struct LeaseMachine {
  rules::LeaseMachine resources;  // only of the kinds that are needed
  GpuVendor vendor = GpuVendor::nvidia;
  std::size_t server_gpus = 0;            // with those that a variable of the login hides
  std::string hiding_variable{};          // "CUDA_VISIBLE_DEVICES"; "": none hides any
  std::vector<VisibleDevices> visible{};  // the login's variables
};

rules::LeaseNeeds to_needs(const wire::LeaseTerms& terms);

// Asks the driver for the GPUs, which can take a second: those of the first vendor that has any. Throws
// LeaseRefused, DriverFails and CannotStart. `prologue`: see wire::LeaseTerms.
LeaseMachine read_lease_machine(const Host& host, const rules::LeaseNeeds& needs,
                                const std::string& prologue = {});
// Updates the memory that is available now.
void read_available_memory(const Host& host, rules::LeaseMachine& machine);

// Lines NAME=VALUE, sorted: with these variables, programs see only these GPUs of the machine.
std::string to_gpu_variables(const LeaseMachine& machine, const std::vector<rules::LeaseMachine::Gpu>& gpus);
// "0,2"
std::string join_indices(const std::vector<rules::LeaseMachine::Gpu>& gpus);

}  // namespace remote::agent
