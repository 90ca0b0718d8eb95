// nvidia-smi: its CSV queries and its XML. Formats: the manual nvidia-smi(1) and `nvidia-smi
// --help-query-gpu`.

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <remote/error.hpp>

#include "servers/gpu_vendors.hpp"

namespace remote::servers {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  throw Error("the answer of nvidia-smi is not understood",
              fmt::format("{} is '{}'", what, text.substr(0, 80)));
}

const GpuOutput* find(const GpuOutputs& outputs, std::string_view name) {
  const auto found = outputs.find(name);
  return found == outputs.end() ? nullptr : &found->second;
}

// "a, b, c" into so many pieces; the last one has the rest, commas and all.
std::vector<std::string> cells(std::string_view line, std::size_t count) {
  std::vector<std::string> found;
  while (found.size() + 1 < count) {
    const std::size_t end = line.find(',');
    if (end == std::string_view::npos) {
      break;
    }
    found.emplace_back(trim(line.substr(0, end)));
    line.remove_prefix(end + 1);
  }
  found.emplace_back(trim(line));
  return found;
}

// What stands in a cell: a value, nothing (this GPU has no such thing), or an error.
class Cell {
 public:
  Cell(Gpu& gpu, std::string_view field, std::string_view text) : gpu_(gpu), field_(field), text_(text) {}

  // Whether there is a value; notes what there is else.
  bool has_value() {
    for (const char* nothing : {"[N/A]", "N/A", "[Not Supported]", "[Not Found]", "[Not Available]", ""}) {
      if (text_ == nothing) {
        return false;
      }
    }
    if (text_.find("GPU is lost") != std::string_view::npos) {
      gpu_.lost = true;
      return false;
    }
    if (text_.starts_with('[') || text_ == "ERR!" || text_ == "Unknown Error") {
      gpu_.unreadable.emplace_back(field_);
      return false;
    }
    return true;
  }

  void into(std::optional<double>& value, double low, double high) {
    if (has_value()) {
      value = number(low, high);
    }
  }
  void into(std::optional<int>& value, int high) {
    if (has_value()) {
      value = static_cast<int>(number(0, high));
    }
  }
  void into_bytes(std::optional<std::uint64_t>& value) {
    if (has_value()) {
      value = static_cast<std::uint64_t>(number(0, 1e9)) * mebibyte;
    }
  }
  void into_count(std::optional<std::uint64_t>& value) {
    if (has_value()) {
      value = parse_number<std::uint64_t>(text_);
      if (!value) {
        refuse(field_, text_);
      }
    }
  }
  void into(std::optional<bool>& value, std::string_view yes, std::string_view no) {
    if (has_value()) {
      if (text_ != yes && text_ != no) {
        refuse(field_, text_);
      }
      value = text_ == yes;
    }
  }
  void into_limits(std::vector<ClockLimit>& limits) {
    if (has_value()) {
      std::uint64_t mask = 0;
      const char* last = text_.data() + text_.size();
      if (!text_.starts_with("0x") || std::from_chars(text_.data() + 2, last, mask, 16).ptr != last ||
          text_.size() < 3) {
        refuse(field_, text_);
      }
      limits = clock_limits(mask);
    }
  }
  void into(std::string& value, std::string_view marks) {
    if (has_value()) {
      if (!gpu_word(text_, marks)) {
        refuse(field_, text_);
      }
      value = text_;
    }
  }

 private:
  double number(double low, double high) const {
    const std::optional<double> value = number_between(text_, low, high);
    if (!value) {
      refuse(field_, text_);
    }
    return *value;
  }

  Gpu& gpu_;
  std::string_view field_;
  std::string_view text_;
};

constexpr int most_clock = 100'000;

void read_memory_health(Gpu& gpu, std::string_view field, Cell& cell) {
  if (field == "ecc.mode.current") {
    cell.into(gpu.ecc, "Enabled", "Disabled");
  } else if (field == "ecc.errors.uncorrected.volatile.total") {
    cell.into_count(gpu.ecc_uncorrected);
  } else if (field == "ecc.errors.uncorrected.aggregate.total") {
    cell.into_count(gpu.ecc_uncorrected_lifetime);
  } else if (field == "retired_pages.pending") {
    cell.into(gpu.remap_pending, "Yes", "No");
  } else {
    refuse("a field", field);
  }
}

void read_setting(Gpu& gpu, GpuTool& tool, std::string_view field, std::string_view text) {
  Cell cell(gpu, field, text);
  if (field == "driver_version") {
    cell.into(tool.driver_version, ".-_");
  } else if (field == "persistence_mode") {
    cell.into(gpu.persistence, "Enabled", "Disabled");
  } else if (field == "compute_mode") {
    if (cell.has_value()) {
      cell.into(gpu.compute_mode.emplace(), "_");
    }
  } else if (field == "mig.mode.current") {
    cell.into(gpu.mig, "Enabled", "Disabled");
  } else {
    read_memory_health(gpu, field, cell);
  }
}

void read_field(Gpu& gpu, GpuTool& tool, std::string_view field, std::string_view text) {
  Cell cell(gpu, field, text);
  if (field == "index") {
    gpu.index = static_cast<int>(number_between(text, 0, most_gpus).value_or(-1));
    if (gpu.index < 0) {
      refuse(field, text);
    }
  } else if (field == "uuid") {
    cell.into(gpu.uuid, "-");
  } else if (field == "pci.bus_id") {
    cell.into(gpu.pci_address, ":.");
  } else if (field == "name") {
    if (cell.has_value()) {
      gpu.name = text.substr(0, 128);
    }
  } else if (field == "memory.total") {
    cell.into_bytes(gpu.memory_total);
  } else if (field == "memory.used") {
    cell.into_bytes(gpu.memory_used);
  } else if (field == "utilization.gpu") {
    cell.into(gpu.utilisation, 0, 100);
  } else if (field == "temperature.gpu") {
    cell.into(gpu.temperature, -100, 300);
  } else if (field == "power.draw") {
    cell.into(gpu.power, 0, 100'000);
  } else if (field == "power.limit") {
    cell.into(gpu.power_limit, 0, 100'000);
  } else if (field == "clocks.sm") {
    cell.into(gpu.clock, most_clock);
  } else if (field == "clocks.max.sm") {
    cell.into(gpu.clock_max, most_clock);
  } else if (field == "clocks.mem") {
    cell.into(gpu.memory_clock, most_clock);
  } else if (field == "clocks_event_reasons.active" || field == "clocks_throttle_reasons.active") {
    cell.into_limits(gpu.clock_limits);
  } else {
    read_setting(gpu, tool, field, text);
  }
}

// "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system …"; newer
// drivers write "GPU0: 0000:3B:00.0".
std::optional<Gpu> lost_gpu(std::string_view line, std::size_t index) {
  if (!line.starts_with("Unable to determine the device handle for")) {
    return std::nullopt;
  }
  Gpu gpu;
  gpu.index = static_cast<int>(index);
  gpu.lost = true;
  for (std::string& word : split_words(line)) {
    if (word.starts_with("GPU")) {
      word.erase(0, 3);
    }
    while (word.ends_with(':')) {
      word.pop_back();
    }
    if (std::ranges::count(word, ':') == 2 && gpu_word(word, ":.")) {
      gpu.pci_address = word;
    }
  }
  return gpu;
}

void read_query(const GpuOutput& query, const GpuOutput& asked, GpuTool& tool, std::vector<Gpu>& gpus) {
  if (asked.lines.size() != 1) {
    refuse("the list of fields", text_of(asked));
  }
  const std::vector<std::string> fields = split(asked.lines.front(), ',');
  for (const std::string& line : query.lines) {
    if (trim(line).empty()) {
      continue;
    }
    if (gpus.size() >= most_gpus) {
      refuse("the number of GPUs", "too large");
    }
    if (const std::optional<Gpu> lost = lost_gpu(line, gpus.size())) {
      gpus.push_back(*lost);
      continue;
    }
    const std::vector<std::string> values = cells(line, fields.size());
    if (values.size() != fields.size()) {
      if (tool.state != GpuToolState::answered) {
        continue;  // its message
      }
      refuse("a line", line);
    }
    Gpu gpu;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      read_field(gpu, tool, fields[i], values[i]);
    }
    gpus.push_back(std::move(gpu));
  }
}

// GPU-uuid, pid, MiB, name.
void read_apps(const GpuOutput& output, const std::map<int, GpuProcess>& known, std::vector<Gpu>& gpus) {
  if (output.code != 0) {
    return;
  }
  for (const std::string& line : output.lines) {
    const std::vector<std::string> values = cells(line, 4);
    if (trim(line).empty() || line.starts_with("No running processes found")) {
      continue;
    }
    const std::optional<int> pid = values.size() == 4 ? parse_number<int>(values[1]) : std::nullopt;
    if (!pid || *pid <= 0) {
      continue;  // another user may name a program so that its line is none: that hides no GPU
    }
    // An instance's UUID ("MIG-…") names no GPU.
    const auto gpu = std::ranges::find_if(gpus, [&](const Gpu& one) {
      return one.uuid == values[0] || (values[0].starts_with("MIG-") && one.mig.value_or(gpus.size() == 1));
    });
    if (gpu == gpus.end()) {
      continue;
    }
    const auto seen = known.find(*pid);
    GpuProcess process = seen != known.end() ? seen->second : GpuProcess{.pid = *pid, .name = {}};
    if (!values[3].starts_with('[') && !values[3].empty()) {  // "[Not Found]", "[Insufficient Permissions]"
      process.name = values[3].substr(0, 512);
    }
    if (!values[2].starts_with('[') && values[2] != "N/A") {
      const std::optional<double> used = number_between(values[2], 0, 1e9);
      if (!used) {
        refuse("a process", line);
      }
      process.memory = static_cast<std::uint64_t>(*used) * mebibyte;
    }
    gpu->processes.push_back(std::move(process));
  }
}

// "<tag>value</tag>": the value; nullopt when it is not this tag.
std::optional<std::string_view> element(std::string_view line, std::string_view tag) {
  const std::string open = fmt::format("<{}>", tag);
  const std::string close = fmt::format("</{}>", tag);
  if (!line.starts_with(open) || !line.ends_with(close) || line.size() < open.size() + close.size()) {
    return std::nullopt;
  }
  const std::string_view value = line.substr(open.size(), line.size() - open.size() - close.size());
  if (value.find_first_of("<>&") != std::string_view::npos) {
    refuse("the XML", line);
  }
  return value;
}

// The lines that gpus.sh leaves of `nvidia-smi -q -x`.
void read_xml(const GpuOutput& output, GpuTool& tool, std::vector<Gpu>& gpus) {
  Gpu nobody;
  Gpu* gpu = &nobody;
  for (const std::string& text : output.lines) {
    const std::string_view line = trim(text);
    if (line.starts_with("<gpu id=")) {
      gpu = &nobody;
    } else if (const auto uuid = element(line, "uuid")) {
      const auto found = std::ranges::find(gpus, *uuid, &Gpu::uuid);
      // Devices within a GPU have UUIDs, too.
      gpu = gpu != &nobody ? gpu : found == gpus.end() ? &nobody : &*found;
    } else if (const auto driver = element(line, "driver_version")) {
      Cell(nobody, "driver_version", *driver).into(tool.driver_version, ".-_");
    } else if (const auto cuda = element(line, "cuda_version")) {
      Cell(nobody, "cuda_version", *cuda).into(tool.library_version, ".");
    } else if (const auto pending = element(line, "remapped_row_pending")) {
      Cell(*gpu, "remapped_row_pending", *pending).into(gpu->remap_pending, "Yes", "No");
    } else if (const auto failure = element(line, "remapped_row_failure")) {
      Cell(*gpu, "remapped_row_failure", *failure).into(gpu->remap_failed, "Yes", "No");
    } else if (output.code == 0) {
      refuse("the XML", line);
    }
  }
}

}  // namespace

void read_nvidia(const GpuOutputs& outputs, const std::map<int, GpuProcess>& processes, GpuFacts& facts) {
  GpuTool& tool = facts.tools.back();
  const GpuOutput* query = find(outputs, "nvidia-query");
  const GpuOutput* fields = find(outputs, "nvidia-fields");
  if (query == nullptr || fields == nullptr) {
    refuse("a part of the answer", "missing");
  }
  tool.state = state_of(*query);
  if (tool.state != GpuToolState::answered) {
    tool.text = text_of(*query).substr(0, 512);
  }
  std::vector<Gpu> gpus;
  if (tool.state == GpuToolState::answered || tool.state == GpuToolState::lost_device) {
    read_query(*query, *fields, tool, gpus);
    tool.state = gpus.empty() ? GpuToolState::no_devices : tool.state;
  }
  if (const GpuOutput* apps = find(outputs, "nvidia-apps")) {
    read_apps(*apps, processes, gpus);
  }
  if (const GpuOutput* xml = find(outputs, "nvidia-xml")) {
    read_xml(*xml, tool, gpus);
  }
  if (const GpuOutput* topology = find(outputs, "nvidia-topo"); topology != nullptr && topology->code == 0) {
    facts.topology = read_topology(topology->lines);
  }
  if (const GpuOutput* xids = find(outputs, "nvidia-xid"); xids != nullptr && xids->code == 0) {
    facts.xids = read_xids(xids->lines);
  }
  facts.gpus.insert(facts.gpus.end(), std::make_move_iterator(gpus.begin()),
                    std::make_move_iterator(gpus.end()));
}

}  // namespace remote::servers
