#include "agent/gpus/gpus.hpp"

#include <algorithm>
#include <array>

#include "agent/gpus/ask.hpp"
#include "agent/gpus/gpu_processes.hpp"
#include "agent/gpus/visible_devices.hpp"
#include "agent/host/files.hpp"
#include "agent/host/login_path.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// Turns every text into a single line, and drops numbers that do not fit the message.
void fit_gpu(Gpu& gpu) {
  for (std::string* text : {&gpu.uuid, &gpu.pci_address, &gpu.name}) {
    *text = wire::to_line(*text);
  }
  for (std::optional<std::uint64_t>* bytes : {&gpu.memory_total, &gpu.memory_used}) {
    if (*bytes && **bytes > wire::max_bytes) {
      bytes->reset();
    }
  }
  for (std::string& field : gpu.unreadable) {
    field = wire::to_line(field, 64);
  }
  constexpr std::size_t most_processes = 10'000;
  gpu.processes.resize(std::min(gpu.processes.size(), most_processes));
  for (GpuProcess& process : gpu.processes) {
    process.name = wire::to_line(process.name);
  }
}

void fit(GpuFacts& facts) {
  facts.gpus.resize(std::min(facts.gpus.size(), most_gpus));
  std::ranges::for_each(facts.gpus, fit_gpu);
  for (GpuTool& tool : facts.tools) {
    tool.text = wire::to_line(tool.text, 1000);
    tool.driver_version = wire::to_line(tool.driver_version);
    tool.library_version = wire::to_line(tool.library_version);
  }
  if (facts.xids) {
    for (XidError& error : *facts.xids) {
      error.text = wire::to_line(error.text, 1000);
    }
  }
}

template <typename Outputs, typename Parse>
void parse_tool(GpuVendor vendor, const char* program, const Outputs& outputs, const Parse& parse,
                GpuFacts& facts) {
  facts.tools.push_back({.vendor = vendor, .program = program});
  const std::size_t before = facts.gpus.size();
  try {
    parse(outputs, facts);
  } catch (const BadAnswer& error) {
    facts.gpus.resize(before);
    facts.tools.back().state = GpuToolState::failed;
    facts.tools.back().text = text::format("its answer is not understood: {}", error.what());
  }
}

// Returns false if the machine certainly has no GPU. NVIDIA's device nodes may be missing until nvidia-smi
// has run.
bool may_have_gpus(const Host& host) {
  constexpr std::array nodes{"nvidia", "nvhost", "nvmap", "nvgpu", "kfd", "dri", "dxg"};
  constexpr std::array vendors{"10de", "1002"};
  for (const std::string& name : list_names(host.system("/dev"))) {
    if (std::ranges::any_of(nodes, [&](const char* node) { return name.starts_with(node); })) {
      return true;
    }
  }
  // Each line starts with "BUS_AND_FUNCTION VENDOR_AND_DEVICE".
  const Path devices = host.system("/proc/bus/pci/devices");
  for (const std::string& line : read_lines(devices)) {
    const std::vector<std::string> words = split_words(line);
    if (words.size() > 1 &&
        std::ranges::any_of(vendors, [&](const char* vendor) { return words[1].starts_with(vendor); })) {
      return true;
    }
  }
  return !exists(devices) && !list_names(host.system("/sys/bus/pci/devices")).empty();
}

}  // namespace

Host add_gpu_folders(const Host& host) {
  Host extended = host;
  std::string& path = extended.environment["PATH"];
  const auto add = [&](const std::string& folder) {
    path += (path.empty() ? "" : ":") + host.system(folder).string();
  };
  for (const char* folder :
       {"/usr/lib/wsl/lib", "/usr/local/nvidia/bin", "/usr/local/cuda/bin", "/opt/rocm/bin"}) {
    add(folder);
  }
  for (const std::string& name : list_names(host.system("/opt"))) {
    if (name.starts_with("rocm-")) {
      add("/opt/" + name + "/bin");
    }
  }
  return extended;
}

bool has_gpu_program(const Host& host) {
  constexpr std::array programs{"nvidia-smi", "amd-smi", "rocm-smi", "xpu-smi"};
  return std::ranges::any_of(programs,
                             [&](const char* program) { return !host.find_program(program).empty(); });
}

Host find_gpu_programs(const Host& host) {
  const Host extended = add_gpu_folders(host);
  return has_gpu_program(extended) || !may_have_gpus(host) ? extended : add_gpu_folders(add_login_path(host));
}

GpuFacts parse_gpus(const GpuOutputs& outputs) {
  GpuFacts facts;
  if (outputs.nvidia) {
    parse_tool(GpuVendor::nvidia, "nvidia-smi", *outputs.nvidia, read_nvidia, facts);
  }
  if (outputs.amd) {
    parse_tool(GpuVendor::amd, outputs.amd->rocm ? "rocm-smi" : "amd-smi", *outputs.amd, read_amd, facts);
  }
  if (outputs.intel) {
    parse_tool(GpuVendor::intel, "xpu-smi", *outputs.intel, read_intel, facts);
  }
  fit(facts);
  return facts;
}

GpuFacts read_gpus(const Host& host, wire::GpuDetail detail) {
  const Host with_programs = find_gpu_programs(host);
  const AskOptions options{.detail = detail, .limit = choose_limit(detail)};
  Background<std::optional<AmdOutputs>> amd([&] { return ask_amd(with_programs, options); });
  Background<std::optional<IntelOutputs>> intel([&] { return ask_intel(with_programs, options); });
  GpuOutputs outputs;
  outputs.nvidia = ask_nvidia(with_programs, options);
  outputs.amd = amd.get();
  outputs.intel = intel.get();
  GpuFacts facts = parse_gpus(outputs);
  identify_processes(host, facts.gpus);
  facts.visible = read_visible_devices(host);
  return facts;
}

}  // namespace remote::agent
