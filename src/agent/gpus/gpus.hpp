#pragma once

#include <optional>

#include <remote/gpu.hpp>

#include "agent/gpus/vendors.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Returns the host with the usual folders of vendors' programs appended to its PATH, because the PATH of an
// SSH session lacks them in WSL, in container images and with ROCm.
Host add_gpu_folders(const Host& host);

// Whether any vendor's program is on the host's PATH.
bool has_gpu_program(const Host& host);

// Returns the host with these folders appended to its PATH. If no vendor's program is found and there may be
// GPUs, also appends the PATH of a login shell, because some sites add these programs only there. Jobs get
// neither. Throws CannotStart.
Host find_gpu_programs(const Host& host);

// Runs every vendor's program on this server; GpuFacts::tools lists them. See find_gpu_programs(). Takes as
// long as the slowest program, at most its time limit per call.
GpuFacts read_gpus(const Host& host, wire::GpuDetail detail);

struct GpuOutputs {
  std::optional<NvidiaOutputs> nvidia{};
  std::optional<AmdOutputs> amd{};
  std::optional<IntelOutputs> intel{};
};

// Parses the outputs. If one differs from the documented format, its tool has the state `failed`, and the
// GPUs of other vendors are kept. The result is within the limits of wire/facts.hpp.
GpuFacts parse_gpus(const GpuOutputs& outputs);

}  // namespace remote::agent
