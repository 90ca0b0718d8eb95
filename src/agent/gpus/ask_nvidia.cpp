#include <algorithm>
#include <utility>

#include "agent/gpus/ask.hpp"
#include "agent/host/run.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view brief_fields =
    "index,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,power.limit,"
    "clocks.sm,clocks.mem,clocks_event_reasons.active,mig.mode.current,ecc.errors.uncorrected.volatile.total,"
    "driver_version";
constexpr std::string_view more_fields =
    "clocks.max.sm,persistence_mode,compute_mode,ecc.mode.current,"
    "ecc.errors.uncorrected.aggregate.total,retired_pages.pending";

const std::string csv = "--format=csv,noheader,nounits";

// The field in 'Field "x" is not a valid field to query.'; "" if the output does not say so.
std::string find_unknown_field(const ToolOutput& output) {
  constexpr std::string_view begin = "Field \"";
  const std::string text = join_lines(output);
  const std::size_t at = text.find(begin);
  if (at == std::string::npos || text.find("\" is not a valid field", at) == std::string::npos) {
    return "";
  }
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find('"', from) - from);
}

// A driver rejects a query that has an unknown field, and names the field. The query is then repeated with
// the field's older name, or without it.
void query_gpus(const Host& host, const AskOptions& options, NvidiaOutputs& outputs) {
  std::vector<std::string>& fields = outputs.fields;
  fields = split(brief_fields, ',');
  if (options.detail == wire::GpuDetail::full) {
    const std::vector<std::string> more = split(more_fields, ',');
    fields.insert(fields.end(), more.begin(), more.end());
  }
  fields.emplace_back("name");  // last, because it may contain commas
  for (int tries = 24; tries > 0; --tries) {
    outputs.query = ask_tool(host, options.limit, {"nvidia-smi", "--query-gpu=" + join(fields, ","), csv});
    const std::string unknown = find_unknown_field(outputs.query);
    const auto found = std::ranges::find(fields, unknown);
    if (found == fields.end() || fields.size() == 1) {
      return;
    }
    if (unknown == "clocks_event_reasons.active") {
      *found = "clocks_throttle_reasons.active";  // the name before driver 535
    } else {
      fields.erase(found);
    }
  }
}

ToolOutput ask_nvidia_smi(const Host& host, const AskOptions& options, std::vector<std::string> words) {
  words.insert(words.begin(), "nvidia-smi");
  return ask_tool(host, options.limit, words);
}

// The newest Xid lines since boot in the kernel's log. A nonzero code means that this user may not read it.
ToolOutput read_kernel_log(const Host& host, std::chrono::milliseconds limit) {
  constexpr std::size_t most_text = std::size_t{32} << 20U;
  constexpr std::ptrdiff_t most_lines = 50;
  RunResult result = run(host, {.argv = {"dmesg"}, .limit = limit, .max_output = most_text});
  if (result.code != 0 && !host.find_program("journalctl").empty()) {
    result = run(host, {.argv = {"journalctl", "-k", "-b", "-q", "--no-pager", "-o", "cat", "-n", "100000"},
                        .limit = limit,
                        .max_output = most_text});
    // Without permission, journalctl prints nothing. A real log has at least the kernel's first line.
    if (trim(result.out).empty()) {
      result.code = 1;
    }
  }
  ToolOutput output{.code = result.code};
  for (std::string& line : to_output(result.out).lines) {
    if (line.find("NVRM: Xid") != std::string::npos) {
      output.lines.push_back(std::move(line));
    }
  }
  const auto count = static_cast<std::ptrdiff_t>(output.lines.size());
  output.lines.erase(output.lines.begin(),
                     output.lines.begin() + std::max<std::ptrdiff_t>(count - most_lines, 0));
  return output;
}

}  // namespace

std::optional<NvidiaOutputs> ask_nvidia(const Host& host, const AskOptions& options) {
  if (host.find_program("nvidia-smi").empty()) {
    return std::nullopt;
  }
  // The name is last, because it may contain commas.
  Background<ToolOutput> apps([&] {
    return ask_nvidia_smi(host, options, {"--query-compute-apps=gpu_uuid,pid,used_memory,process_name", csv});
  });
  std::optional<Background<ToolOutput>> xml;
  std::optional<Background<ToolOutput>> topology;
  std::optional<Background<ToolOutput>> kernel_log;
  if (options.detail == wire::GpuDetail::full) {
    xml.emplace([&] { return ask_nvidia_smi(host, options, {"-q", "-x"}); });
    topology.emplace([&] { return ask_nvidia_smi(host, options, {"topo", "-m"}); });
    kernel_log.emplace([&] { return read_kernel_log(host, options.limit); });
  }
  NvidiaOutputs outputs;
  query_gpus(host, options, outputs);
  // Code 15 means that a GPU has fallen off the bus, but there may be others.
  if (outputs.query.code != 0 && outputs.query.code != 15) {
    return outputs;
  }
  outputs.apps = apps.get();
  if (options.detail == wire::GpuDetail::full) {
    outputs.xml = xml->get();
    outputs.topology = topology->get();
    outputs.kernel_log = kernel_log->get();
  }
  return outputs;
}

}  // namespace remote::agent
