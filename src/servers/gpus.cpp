#include "servers/gpus.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/decimal.hpp"
#include "servers/gpu_vendors.hpp"

namespace remote {

namespace {

struct LimitName {
  ClockLimit limit;
  const char* name;
};
// In the order of their bits in nvml.h (nvmlClocksEventReasons).
constexpr std::array limit_names = {LimitName{ClockLimit::idle, "gpu_idle"},
                                    LimitName{ClockLimit::application_setting, "applications_clocks_setting"},
                                    LimitName{ClockLimit::power_cap, "sw_power_cap"},
                                    LimitName{ClockLimit::hardware_slowdown, "hw_slowdown"},
                                    LimitName{ClockLimit::sync_boost, "sync_boost"},
                                    LimitName{ClockLimit::software_thermal, "sw_thermal_slowdown"},
                                    LimitName{ClockLimit::hardware_thermal, "hw_thermal_slowdown"},
                                    LimitName{ClockLimit::hardware_power_brake, "hw_power_brake_slowdown"},
                                    LimitName{ClockLimit::display_setting, "display_clocks_setting"}};

}  // namespace

std::string name_of(ClockLimit limit) {
  for (const LimitName& entry : limit_names) {
    if (entry.limit == limit) {
      return entry.name;
    }
  }
  return "other";
}

bool is_fault(ClockLimit limit) {
  return limit == ClockLimit::hardware_slowdown || limit == ClockLimit::software_thermal ||
         limit == ClockLimit::hardware_thermal || limit == ClockLimit::hardware_power_brake;
}

std::string name_of(GpuToolState state) {
  // in the order of the states
  constexpr std::array names{"answered",    "no devices",    "no driver", "version mismatch",
                             "lost device", "no permission", "hangs",     "failed"};
  return names.at(static_cast<std::size_t>(state));
}

}  // namespace remote

namespace remote::servers {
namespace {

// Far more than any server's programs print.
constexpr std::size_t most_tool_lines = 20'000;

struct Question {
  std::string_view name;
  GpuVendor vendor;
  std::string_view program;
};
// All that gpus.sh asks. The first of a vendor's is the one whose end tells how its program is.
constexpr std::array questions = {Question{"nvidia-query", GpuVendor::nvidia, "nvidia-smi"},
                                  Question{"nvidia-fields", GpuVendor::nvidia, "nvidia-smi"},
                                  Question{"nvidia-apps", GpuVendor::nvidia, "nvidia-smi"},
                                  Question{"nvidia-xml", GpuVendor::nvidia, "nvidia-smi"},
                                  Question{"nvidia-topo", GpuVendor::nvidia, "nvidia-smi"},
                                  Question{"nvidia-xid", GpuVendor::nvidia, "nvidia-smi"},
                                  Question{"amd-static", GpuVendor::amd, "amd-smi"},
                                  Question{"amd-metric", GpuVendor::amd, "amd-smi"},
                                  Question{"rocm", GpuVendor::amd, "rocm-smi"},
                                  Question{"intel-list", GpuVendor::intel, "xpu-smi"},
                                  Question{"intel-dump", GpuVendor::intel, "xpu-smi"}};

const Question& question(AnswerLine& line) {
  const std::string_view name = line.word();
  for (const Question& one : questions) {
    if (one.name == name) {
      return one;
    }
  }
  line.refuse("a question is not known");
}

GpuProcess read_process(AnswerLine& line) {
  GpuProcess process;
  process.pid = line.pid();
  process.user = line.name();
  process.own = line.choice<bool>(line.word(), {{"0", false}, {"1", true}}, "an owner is wrong");
  if (const std::string_view age = line.word(); age != "-") {
    process.age = std::chrono::seconds(line.number_in<std::int64_t>(age, 0, std::int64_t{1} << 40U));
  }
  if (const std::string_view job = line.word(); job != "-") {
    if (job.size() != 32 || job.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
      line.refuse("a job's id is wrong");
    }
    process.job = job;
  }
  const std::string_view name = line.rest();
  if (name.size() > 64) {
    line.refuse("a program's name is wrong");
  }
  process.name = name == "-" ? "" : name;
  return process;
}

}  // namespace

bool GpuAnswer::takes(std::string_view kind) {
  return kind == "gpu-out" || kind == "gpu-end" || kind == "gpu-pid";
}

void GpuAnswer::take(AnswerLine& line) {
  if (++lines_ > most_tool_lines) {
    line.refuse("too many lines about GPUs");
  }
  if (line.kind() == "gpu-pid") {
    const GpuProcess process = read_process(line);
    processes_[process.pid] = process;
    return;
  }
  if (line.kind() != "gpu-out" && line.kind() != "gpu-end") {
    line.refuse_kind();
  }
  const std::string name(question(line).name);
  if (ended_.contains(name)) {
    line.refuse("a question is answered twice");
  }
  if (line.kind() == "gpu-end") {
    outputs_[name].code = line.number(0, 255);
    ended_.insert(name);
    line.end();
    return;
  }
  std::string_view text = line.rest();
  if (!text.starts_with('|')) {
    line.refuse("a bar is missing");
  }
  text.remove_prefix(1);
  while (text.ends_with('\r')) {
    text.remove_suffix(1);
  }
  outputs_[name].lines.emplace_back(text);
}

std::string text_of(const GpuOutput& output) {
  return join(output.lines, "\n");
}

GpuToolState state_of(const GpuOutput& output) {
  const std::string text = text_of(output);
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  // The codes are those of nvidia-smi's manual ("Return value"); 124 is timeout's, 137 its KILL.
  if (output.code == 124 || output.code == 137) {
    return GpuToolState::hangs;
  }
  if (says("No devices were found")) {
    return GpuToolState::no_devices;
  }
  if (output.code == 9 || says("couldn't communicate with the NVIDIA driver")) {
    return GpuToolState::no_driver;
  }
  if (says("Driver/library version mismatch")) {
    return GpuToolState::version_mismatch;
  }
  if (output.code == 15 || says("Unable to determine the device handle") || says("fallen off the bus")) {
    return GpuToolState::lost_device;
  }
  if (output.code == 0) {
    return GpuToolState::answered;
  }
  if (output.code == 4 || says("Insufficient Permissions")) {
    return GpuToolState::no_permission;
  }
  return GpuToolState::failed;
}

std::optional<double> number_between(std::string_view text, double low, double high) {
  const std::optional<double> value = parse_decimal(text);
  if (!value || !(*value >= low && *value <= high)) {
    return std::nullopt;
  }
  return value;
}

std::vector<ClockLimit> clock_limits(std::uint64_t mask) {
  std::vector<ClockLimit> limits;
  for (std::size_t bit = 0; bit < limit_names.size(); ++bit) {
    if ((mask >> bit & 1U) != 0) {
      limits.push_back(limit_names[bit].limit);
    }
  }
  if (mask >> limit_names.size() != 0) {
    limits.push_back(ClockLimit::other);
  }
  return limits;
}

GpuFacts GpuAnswer::facts() const {
  GpuFacts facts;
  for (const auto& [name, output] : outputs_) {
    if (!ended_.contains(name)) {
      throw Error("the server's answer is cut short", fmt::format("the end of '{}' is missing", name));
    }
  }
  const auto read = [&](GpuVendor vendor, const auto& reader) {
    const auto asked = std::ranges::find_if(
        questions, [&](const Question& one) { return one.vendor == vendor && outputs_.contains(one.name); });
    if (asked == questions.end()) {
      return;
    }
    facts.tools.push_back({.vendor = vendor, .program = std::string(asked->program)});
    const std::size_t before = facts.gpus.size();
    try {
      reader(facts);
    } catch (const Error& error) {
      // What was half understood is not kept.
      facts.gpus.resize(before);
      facts.tools.back().state = GpuToolState::failed;
      facts.tools.back().text = fmt::format("its answer is not understood: {}", error.reason());
    }
  };
  read(GpuVendor::nvidia, [&](GpuFacts& all) { read_nvidia(outputs_, processes_, all); });
  read(GpuVendor::amd, [&](GpuFacts& all) { read_amd(outputs_, all); });
  read(GpuVendor::intel, [&](GpuFacts& all) { read_intel(outputs_, all); });
  return facts;
}

}  // namespace remote::servers
