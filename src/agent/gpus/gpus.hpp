#pragma once

#include <optional>

#include <remote/gpu.hpp>

#include "agent/gpus/vendors.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// The host with the usual folders of vendors' programs after its PATH: in WSL, container images and ROCm, the
// PATH of an SSH session lacks them.
Host add_gpu_folders(const Host& host);

// Whether one of the vendors' programs is on the PATH of the host.
bool has_gpu_program(const Host& host);

// The host with these folders after its PATH. Adds the PATH of a login shell as well, if no vendor's program
// is found and there may be GPUs: some sites set that PATH only for login shells. Jobs get neither. Throws
// CannotStart.
Host find_gpu_programs(const Host& host);

// Asks every vendor's program of this server; GpuFacts::tools has each of them. See
// find_gpu_programs(). Takes as long as the slowest program, at most its time limit per call.
GpuFacts read_gpus(const Host& host, wire::GpuDetail detail);

struct GpuOutputs {
  std::optional<NvidiaOutputs> nvidia{};
  std::optional<AmdOutputs> amd{};
  std::optional<IntelOutputs> intel{};
};

// Parses the outputs. If one is not as documented, its tool has the state `failed`, and the GPUs of other
// vendors remain. The result is within the limits of wire/facts.hpp.
GpuFacts parse_gpus(const GpuOutputs& outputs);

}  // namespace remote::agent
