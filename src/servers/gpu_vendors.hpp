#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/gpu.hpp>

#include "servers/gpus.hpp"

// How the vendors' programs are read. Pure: text in, facts out. Each function adds what its programs told, if
// they were asked, and throws Error for text that is not as their documentation says.

namespace remote::servers {

// nvidia-smi. `processes` by pid: what the server itself knows of them.
void read_nvidia(const GpuOutputs& outputs, const std::map<int, GpuProcess>& processes, GpuFacts& facts);
// amd-smi or rocm-smi.
void read_amd(const GpuOutputs& outputs, GpuFacts& facts);
// xpu-smi.
void read_intel(const GpuOutputs& outputs, GpuFacts& facts);

// The matrix of `nvidia-smi topo -m`; nullopt: there is none.
std::optional<GpuTopology> read_topology(const std::vector<std::string>& lines);
// The lines "NVRM: Xid (PCI:0000:3b:00): 79, …" of the kernel's log.
std::vector<XidError> read_xids(const std::vector<std::string>& lines);
// The reasons that stand in nvidia-smi's mask as bits.
std::vector<ClockLimit> clock_limits(std::uint64_t mask);

// What it means that a program ended with an error and said this.
GpuToolState state_of(const GpuOutput& output);
// The lines as one text.
std::string text_of(const GpuOutput& output);

inline constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
// No server has as many.
inline constexpr std::size_t most_gpus = 1024;

// Whether it is a word of ASCII letters, digits and these marks, of 80 characters at most.
bool gpu_word(std::string_view text, std::string_view marks);
// A decimal number within these bounds; nullopt for anything else.
std::optional<double> number_between(std::string_view text, double low, double high);

}  // namespace remote::servers
