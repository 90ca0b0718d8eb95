// The CSV queries and the XML of nvidia-smi. Formats: the manual nvidia-smi(1) and `nvidia-smi
// --help-query-gpu`.

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "agent/gpus/vendors.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

[[noreturn]] void refuse_nvidia(std::string_view what, std::string_view text) {
  throw BadAnswer(text::format("{} is '{}'", what, text.substr(0, 80)));
}

// Splits "a, b, c" into at most `count` cells; the last one has the rest, including its commas.
std::vector<std::string> split_cells(std::string_view line, std::size_t count) {
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

// One cell: a value, a text that means "not available on this GPU", or an error.
class Cell {
 public:
  Cell(Gpu& gpu, std::string_view field, std::string_view text) : gpu_(gpu), field_(field), text_(text) {}

  // Whether there is a value. Records an error in the GPU.
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

  void read(std::optional<double>& value, double low, double high) {
    if (has_value()) {
      value = number(low, high);
    }
  }
  void read(std::optional<int>& value, int high) {
    if (has_value()) {
      value = static_cast<int>(number(0, high));
    }
  }
  void read_bytes(std::optional<std::uint64_t>& value) {
    if (has_value()) {
      value = static_cast<std::uint64_t>(number(0, 1e9)) * mebibyte;
    }
  }
  void read_count(std::optional<std::uint64_t>& value) {
    if (has_value()) {
      value = parse_number<std::uint64_t>(text_);
      if (!value) {
        refuse_nvidia(field_, text_);
      }
      if (*value > std::numeric_limits<std::int64_t>::max()) {  // a negative error code
        value.reset();
        gpu_.unreadable.emplace_back(field_);
      }
    }
  }
  void read(std::optional<bool>& value, std::string_view yes, std::string_view no) {
    if (has_value()) {
      if (text_ != yes && text_ != no) {
        refuse_nvidia(field_, text_);
      }
      value = text_ == yes;
    }
  }
  void read_limits(std::vector<ClockLimit>& limits) {
    if (has_value()) {
      std::uint64_t mask = 0;
      const char* last = text_.data() + text_.size();
      if (!text_.starts_with("0x") || std::from_chars(text_.data() + 2, last, mask, 16).ptr != last ||
          text_.size() < 3) {
        refuse_nvidia(field_, text_);
      }
      limits = decode_clock_limits(mask);
    }
  }
  void read(std::string& value, std::string_view marks) {
    if (has_value()) {
      if (!is_word(text_, marks)) {
        refuse_nvidia(field_, text_);
      }
      value = text_;
    }
  }

 private:
  double number(double low, double high) const {
    const std::optional<double> value = parse_between(text_, low, high);
    if (!value) {
      refuse_nvidia(field_, text_);
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
    cell.read(gpu.ecc, "Enabled", "Disabled");
  } else if (field == "ecc.errors.uncorrected.volatile.total") {
    cell.read_count(gpu.ecc_uncorrected);
  } else if (field == "ecc.errors.uncorrected.aggregate.total") {
    cell.read_count(gpu.ecc_uncorrected_lifetime);
  } else if (field == "retired_pages.pending") {
    cell.read(gpu.remap_pending, "Yes", "No");
  } else {
    refuse_nvidia("a field", field);
  }
}

void read_setting(Gpu& gpu, GpuTool& tool, std::string_view field, std::string_view text) {
  Cell cell(gpu, field, text);
  if (field == "driver_version") {
    cell.read(tool.driver_version, ".-_");
  } else if (field == "persistence_mode") {
    cell.read(gpu.persistence, "Enabled", "Disabled");
  } else if (field == "compute_mode") {
    if (cell.has_value()) {
      cell.read(gpu.compute_mode.emplace(), "_");
    }
  } else if (field == "mig.mode.current") {
    cell.read(gpu.mig, "Enabled", "Disabled");
  } else {
    read_memory_health(gpu, field, cell);
  }
}

void read_field(Gpu& gpu, GpuTool& tool, std::string_view field, std::string_view text) {
  Cell cell(gpu, field, text);
  if (field == "index") {
    gpu.index = static_cast<int>(parse_between(text, 0, most_gpus).value_or(-1));
    if (gpu.index < 0) {
      refuse_nvidia(field, text);
    }
  } else if (field == "uuid") {
    cell.read(gpu.uuid, "-");
  } else if (field == "pci.bus_id") {
    cell.read(gpu.pci_address, ":.");
  } else if (field == "name") {
    if (cell.has_value()) {
      gpu.name = text;
    }
  } else if (field == "memory.total") {
    cell.read_bytes(gpu.memory_total);
  } else if (field == "memory.used") {
    cell.read_bytes(gpu.memory_used);
  } else if (field == "utilization.gpu") {
    cell.read(gpu.utilisation, 0, 100);
  } else if (field == "temperature.gpu") {
    cell.read(gpu.temperature, -100, 300);
  } else if (field == "power.draw") {
    cell.read(gpu.power, 0, 100'000);
  } else if (field == "power.limit") {
    cell.read(gpu.power_limit, 0, 100'000);
  } else if (field == "clocks.sm") {
    cell.read(gpu.clock, most_clock);
  } else if (field == "clocks.max.sm") {
    cell.read(gpu.clock_max, most_clock);
  } else if (field == "clocks.mem") {
    cell.read(gpu.memory_clock, most_clock);
  } else if (field == "clocks_event_reasons.active" || field == "clocks_throttle_reasons.active") {
    cell.read_limits(gpu.clock_limits);
  } else {
    read_setting(gpu, tool, field, text);
  }
}

// Parses "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system …".
// Newer drivers write "GPU0: 0000:3B:00.0".
std::optional<Gpu> read_lost_gpu(std::string_view line, std::size_t index) {
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
    if (std::ranges::count(word, ':') == 2 && is_word(word, ":.")) {
      gpu.pci_address = word;
    }
  }
  return gpu;
}

void read_query(const NvidiaOutputs& outputs, GpuTool& tool, std::vector<Gpu>& gpus) {
  const std::vector<std::string>& fields = outputs.fields;
  for (const std::string& line : outputs.query.lines) {
    if (trim(line).empty()) {
      continue;
    }
    if (gpus.size() >= most_gpus) {
      refuse_nvidia("the number of GPUs", "too large");
    }
    if (const std::optional<Gpu> lost = read_lost_gpu(line, gpus.size())) {
      gpus.push_back(*lost);
      continue;
    }
    const std::vector<std::string> values = split_cells(line, fields.size());
    if (values.size() != fields.size()) {
      if (tool.state != GpuToolState::answered) {
        continue;  // the text of the message
      }
      refuse_nvidia("a line", line);
    }
    Gpu gpu;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      read_field(gpu, tool, fields[i], values[i]);
    }
    gpus.push_back(std::move(gpu));
  }
}

// Finds a GPU by its UUID. The UUID of a MIG instance ("MIG-…") does not identify the GPU.
Gpu* find_gpu(std::vector<Gpu>& gpus, const std::string& uuid) {
  const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) {
    return gpu.uuid == uuid || (uuid.starts_with("MIG-") && gpu.mig.value_or(gpus.size() == 1));
  });
  return found == gpus.end() ? nullptr : &*found;
}

// Lines "GPU-uuid, pid, MiB, name".
void read_apps(const ToolOutput& output, std::vector<Gpu>& gpus) {
  if (output.code != 0) {
    return;
  }
  for (const std::string& line : output.lines) {
    const std::vector<std::string> values = split_cells(line, 4);
    if (trim(line).empty() || line.starts_with("No running processes found")) {
      continue;
    }
    const std::optional<int> pid = values.size() == 4 ? parse_number<int>(values[1]) : std::nullopt;
    if (!pid || *pid <= 0 || *pid > 1 << 30) {
      continue;  // the program name of another user's process may contain newlines, which must not hide a GPU
    }
    Gpu* gpu = find_gpu(gpus, values[0]);
    if (gpu == nullptr) {
      continue;
    }
    GpuProcess process{.pid = *pid, .name = {}};
    if (!values[3].starts_with('[')) {  // "[Not Found]", "[Insufficient Permissions]"
      process.name = values[3];
    }
    if (!values[2].starts_with('[') && values[2] != "N/A") {
      const std::optional<double> used = parse_between(values[2], 0, 1e9);
      if (!used) {
        refuse_nvidia("a process", line);
      }
      process.memory = static_cast<std::uint64_t>(*used) * mebibyte;
    }
    gpu->processes.push_back(std::move(process));
  }
}

// The value of a line "<tag>value</tag>"; nullopt for another tag, or if the line is truncated.
std::optional<std::string_view> read_element(std::string_view line, std::string_view tag) {
  const std::string open = text::format("<{}>", tag);
  const std::string close = text::format("</{}>", tag);
  if (!line.starts_with(open) || !line.ends_with(close) || line.size() < open.size() + close.size()) {
    return std::nullopt;
  }
  const std::string_view value = line.substr(open.size(), line.size() - open.size() - close.size());
  if (value.find_first_of("<>&") != std::string_view::npos) {
    refuse_nvidia("the XML", line);
  }
  return value;
}

bool begins_element(std::string_view line) {
  constexpr std::array<std::string_view, 5> tags{"<uuid>", "<driver_version>", "<cuda_version>",
                                                 "<remapped_row_pending>", "<remapped_row_failure>"};
  return std::ranges::any_of(tags, [&](std::string_view tag) { return line.starts_with(tag); });
}

// Reads the fields that --query-gpu lacks.
void read_xml(const ToolOutput& output, GpuTool& tool, std::vector<Gpu>& gpus) {
  Gpu other;
  Gpu* gpu = &other;
  for (const std::string& text : output.lines) {
    const std::string_view line = trim(text);
    if (line.starts_with("<gpu id=")) {
      gpu = &other;
    } else if (const auto uuid = read_element(line, "uuid")) {
      const auto found = std::ranges::find(gpus, *uuid, &Gpu::uuid);
      // Devices inside a GPU have UUIDs too.
      gpu = gpu != &other ? gpu : found == gpus.end() ? &other : &*found;
    } else if (const auto driver = read_element(line, "driver_version")) {
      Cell(other, "driver_version", *driver).read(tool.driver_version, ".-_");
    } else if (const auto cuda = read_element(line, "cuda_version")) {
      Cell(other, "cuda_version", *cuda).read(tool.library_version, ".");
    } else if (const auto pending = read_element(line, "remapped_row_pending")) {
      Cell(*gpu, "remapped_row_pending", *pending).read(gpu->remap_pending, "Yes", "No");
    } else if (const auto failure = read_element(line, "remapped_row_failure")) {
      Cell(*gpu, "remapped_row_failure", *failure).read(gpu->remap_failed, "Yes", "No");
    } else if (output.code == 0 && begins_element(line)) {
      refuse_nvidia("the XML", line);
    }
  }
}

}  // namespace

void read_nvidia(const NvidiaOutputs& outputs, GpuFacts& facts) {
  GpuTool& tool = facts.tools.back();
  tool.state = find_state(outputs.query);
  if (tool.state != GpuToolState::answered) {
    tool.text = summarize(outputs.query);
  }
  std::vector<Gpu> gpus;
  if (tool.state == GpuToolState::answered || tool.state == GpuToolState::lost_device) {
    read_query(outputs, tool, gpus);
    if (gpus.empty() && tool.state == GpuToolState::answered) {
      tool.state = GpuToolState::no_devices;
    }
  }
  if (outputs.apps) {
    read_apps(*outputs.apps, gpus);
  }
  if (outputs.xml) {
    read_xml(*outputs.xml, tool, gpus);
  }
  if (outputs.topology && outputs.topology->code == 0) {
    facts.topology = read_topology(outputs.topology->lines);
  }
  if (outputs.kernel_log && outputs.kernel_log->code == 0) {
    facts.xids = read_xids(outputs.kernel_log->lines);
  }
  facts.gpus.insert(facts.gpus.end(), std::make_move_iterator(gpus.begin()),
                    std::make_move_iterator(gpus.end()));
}

}  // namespace remote::agent
