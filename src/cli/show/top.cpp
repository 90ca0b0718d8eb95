#include "cli/show/top.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/context.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/gpus.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/sweeps.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

using ui::Style;

constexpr double gibibyte = 1024.0 * 1024 * 1024;

// Builds a line piece by piece, up to a maximum width.
class Line {
 public:
  Line(const ui::Terminal& terminal, std::optional<std::size_t> width) : terminal_(terminal), width_(width) {}

  Line& add(std::string_view foreign, Style style = Style::plain) {
    std::string text = visible_line(foreign, 500);
    if (width_) {
      text = ui::shorten(text, *width_ - std::min(at_, *width_));
    }
    at_ += ui::display_width(text);
    text_ += trim(text).empty() || style == Style::plain ? text : terminal_.paint_out(style, text);
    return *this;
  }
  // Like add(), padded with blanks to this width: on the left for numbers, otherwise on the right.
  Line& column(std::string_view text, std::size_t size, bool number = false, Style style = Style::plain) {
    const std::size_t used = ui::display_width(text);
    const std::string blanks(size - std::min(used, size), ' ');
    return number ? add(blanks).add(text, style) : add(text, style).add(blanks);
  }
  TopLine end(std::optional<JobId> job = {}) const { return {text_, job}; }

 private:
  const ui::Terminal& terminal_;
  std::optional<std::size_t> width_;
  std::size_t at_ = 0;
  std::string text_;
};

// "39.6 of 80.0 GiB"
std::string of_gibi(double used, double total) {
  return fmt::format("{:.1f} of {:.1f} GiB", used / gibibyte, total / gibibyte);
}

std::string percent(double value) {
  return fmt::format("{:.0f} %", value);
}

// Yellow if nearly used up, red if used up.
Style by_share(double share) {
  return share >= 0.97 ? Style::red : share >= 0.9 ? Style::yellow : Style::plain;
}

void add_load(Line& line, const ServerLoad& load) {
  const std::string cpus = counted(static_cast<std::size_t>(load.cpus), "CPU");
  if (load.cpu) {
    line.add("  cpu ", Style::dim).add(percent(*load.cpu)).add(fmt::format(" of {}", load.cpus), Style::dim);
  } else {
    line.add("  " + cpus);
  }
  line.add("  load ", Style::dim).add(fmt::format("{:.1f}", load.load));
  if (load.memory_total && load.memory_available && *load.memory_total > 0) {
    const auto total = static_cast<double>(*load.memory_total);
    const double used = total - std::min(static_cast<double>(*load.memory_available), total);
    line.add("  memory ", Style::dim).add(of_gibi(used, total), by_share(used / total));
  }
  if (load.disk_total && load.disk_free && *load.disk_total > 0) {
    const auto total = static_cast<double>(*load.disk_total);
    const auto free = static_cast<double>(*load.disk_free);
    line.add("  disk ", Style::dim).add(mebi_or_gibi(free) + " free", by_share(1 - free / total));
  }
}

TopLine head(const Context& context, const ServerSample& sample, const TopView& view,
             std::size_t name_width) {
  Line line(context.terminal, view.width);
  line.column(sample.server, name_width, false, Style::bold);
  const std::chrono::seconds silent =
      sample.heard_at ? now_seconds() - *sample.heard_at : std::chrono::seconds(0);
  if (sample.error) {
    line.add("  " + sample.error->reason(), Style::red);
  } else if (silent > view.silent_after) {
    line.add("  does not answer", Style::red);
  } else if (!sample.heard_at) {
    line.add("  has not answered yet", Style::dim);
  } else {
    add_load(line, sample.load);
    return line.end();
  }
  if (sample.heard_at) {
    line.add(fmt::format("  last heard {} ago", format_duration(silent)), Style::dim);
  }
  return line.end();
}

// "bob: python3 (4121)", or "process 4121" if nothing else is known about it.
std::string name_of_holder(const GpuProcess& process) {
  if (process.user.empty() && process.name.empty()) {
    return fmt::format("process {}", process.pid);
  }
  const std::string name = process.name.substr(process.name.rfind('/') + 1);  // without the folder
  return fmt::format("{}{}{} ({})", process.user, process.user.empty() || name.empty() ? "" : ": ", name,
                     process.pid);
}

// The processes that use memory of the GPU, each once: "job 3", "bob: python3 (4121)".
std::vector<std::pair<std::string, Style>> holders(const Gpu& gpu, const std::map<std::string, int>& keys,
                                                   bool others, const std::string& leased_by) {
  std::vector<std::pair<std::string, Style>> all;
  for (const GpuProcess& process : gpu.processes) {
    std::pair<std::string, Style> one;
    if (const auto key = keys.find(process.job); key != keys.end()) {
      one = {fmt::format("job {}", key->second), Style::green};
    } else if (!process.job.empty()) {
      one = {fmt::format("job {:.8}{}", process.job, others ? " of another project" : ""), Style::green};
    } else {
      one = {name_of_holder(process), Style::yellow};
    }
    if (std::ranges::find(all, one) == all.end()) {
      all.push_back(one);
    }
  }
  if (!leased_by.empty()) {
    all.emplace_back("leased by " + leased_by, all.empty() ? Style::yellow : Style::dim);
  }
  if (all.empty()) {
    const std::optional<bool> used = in_use(gpu);
    all.emplace_back(!used   ? "use unknown"
                     : *used ? "in use, no visible process"
                             : "free",
                     used.value_or(true) ? Style::yellow : Style::dim);
  }
  return all;
}

// The user who has leased the GPU; "": none.
std::string lessee(const ServerLoad& load, const Gpu& gpu) {
  const auto found = std::ranges::find_if(load.leases, [&](const Lease& lease) {
    return std::ranges::find(lease.gpus, gpu.uuid) != lease.gpus.end();
  });
  return found == load.leases.end() ? "" : visible_line(found->user, 60);
}

std::string slowed_by(ClockLimit limit) {
  switch (limit) {
    case ClockLimit::software_thermal:
    case ClockLimit::hardware_thermal:
      return "slowed by heat";
    case ClockLimit::hardware_power_brake:
      return "slowed by the power supply";
    default:
      return "slowed by hardware";
  }
}

// The problems of a GPU, in few words.
std::string faults(const Gpu& gpu) {
  std::vector<std::string> all;
  // hw_slowdown is set together with its reason
  for (auto limit = gpu.clock_limits.rbegin(); limit != gpu.clock_limits.rend(); ++limit) {
    if (is_fault(*limit) && (all.empty() || (*limit != ClockLimit::hardware_slowdown &&
                                             std::ranges::find(all, slowed_by(*limit)) == all.end()))) {
      all.push_back(slowed_by(*limit));
    }
  }
  if (gpu.ecc_uncorrected.value_or(0) > 0) {
    all.push_back(counted(*gpu.ecc_uncorrected, "memory error"));
  }
  if (!gpu.unreadable.empty()) {
    all.push_back("cannot read " + gpu.unreadable.front());
  }
  return join(all, ", ");
}

TopLine gpu_line(const Context& context, const Gpu& gpu, const TopView& view,
                 const std::map<std::string, int>& keys, const ServerLoad& load) {
  Line line(context.terminal, view.width);
  line.add("  GPU ", Style::dim).column(std::to_string(gpu.index), 2);
  if (gpu.lost) {
    return line.add(" lost: restart the server to get it back", Style::red).end();
  }
  line.column(gpu.utilisation ? percent(*gpu.utilisation) : "-", 6, true);
  const std::string memory =
      gpu.memory_used && gpu.memory_total
          ? of_gibi(static_cast<double>(*gpu.memory_used), static_cast<double>(*gpu.memory_total))
          : "-";
  line.column(memory, 19, true);
  line.column(gpu.temperature ? fmt::format("{:.0f} °C", *gpu.temperature) : "-", 8, true,
              gpu.temperature.value_or(0) >= 85 ? Style::yellow : Style::plain);
  const std::string limit = gpu.power_limit ? fmt::format(" of {:.0f}", *gpu.power_limit) : "";
  line.column(gpu.power ? fmt::format("{:.0f}{} W", *gpu.power, limit) : "-", 14, true).add("  ");
  if (const std::string wrong = faults(gpu); !wrong.empty()) {
    line.add(wrong, Style::red).add("  ");
  }
  const char* between = "";
  for (const auto& [text, style] : holders(gpu, keys, !load.others.empty(), lessee(load, gpu))) {
    line.add(between).add(text, style);
    between = ", ";
  }
  const std::string_view name = gpu.name;
  return line.add("  ").add(name.starts_with("NVIDIA ") ? name.substr(7) : name, Style::dim).end();
}

TopLine job_line(const Context& context, const JobSample& one, const TopView& view) {
  const Job& job = one.job;
  const bool selected = view.selected == job.id;
  Line line(context.terminal, view.width);
  line.add(selected ? "> " : "  ", Style::cyan).add("job ", Style::dim);
  line.column(std::to_string(job.key), 4, false, selected ? Style::bold : Style::plain);
  const Instant since = job.started_at.value_or(job.created_at);
  line.column(state_text(job), 9, false, job.state == JobState::running ? Style::green : Style::yellow);
  line.column(format_duration(now_seconds() - since), 8, true).add("  ");
  if (job.rank) {
    line.add(rank_text(job) + "  ");
  }
  // Shortens the command so that part of the last line remains visible.
  line.add(visible_line(filled_command(job), view.width ? std::max<std::size_t>(*view.width / 3, 12) : 500));
  if (!trim(one.last_line).empty()) {
    const std::string age = age_of_output(job);
    line.add(age.empty() ? " | " : " | " + age + ": ", Style::dim).add(trim(one.last_line), Style::dim);
  }
  return line.end(job.id);
}

TopLine tool_line(const Context& context, const GpuTool& tool, const TopView& view) {
  Line line(context.terminal, view.width);
  std::string text = tool.text.substr(0, tool.text.find('\n'));
  return line.add("  " + tool.program + ": ", Style::dim)
      .add(tool.state == GpuToolState::hangs ? "it does not answer" : text, Style::red)
      .end();
}

}  // namespace

std::vector<TopLine> top_lines(const Context& context, const std::vector<ServerSample>& samples,
                               const TopView& view) {
  std::size_t name_width = 0;
  for (const ServerSample& sample : samples) {
    name_width = std::max(name_width, ui::display_width(visible_line(sample.server)));
  }
  std::vector<TopLine> lines;
  for (const ServerSample& sample : samples) {
    lines.push_back(head(context, sample, view, name_width));
    std::map<std::string, int> keys = sample.other_keys;
    for (const JobSample& one : sample.jobs) {
      keys.emplace(one.job.id.text(), one.job.key);
    }
    for (const GpuTool& tool : sample.gpus.tools) {
      if (tool.state != GpuToolState::answered && tool.state != GpuToolState::no_devices &&
          tool.state != GpuToolState::lost_device) {
        lines.push_back(tool_line(context, tool, view));
      }
    }
    for (const Gpu& gpu : sample.gpus.gpus) {
      lines.push_back(gpu_line(context, gpu, view, keys, sample.load));
    }
    for (const JobSample& one : sample.jobs) {
      lines.push_back(job_line(context, one, view));
    }
    if (const std::string leases = leases_text(sample.load); !leases.empty()) {
      lines.push_back(
          Line(context.terminal, view.width).add("  leases: ", Style::dim).add(leases, Style::dim).end());
    }
    if (const std::string others = other_jobs(sample.load); !others.empty()) {
      lines.push_back(
          Line(context.terminal, view.width).add("  other jobs: ", Style::dim).add(others, Style::dim).end());
    }
  }
  return lines;
}

std::string other_jobs(const ServerLoad& load) {
  std::vector<std::string> parts;
  if (load.unrecorded > 0) {
    parts.push_back(
        fmt::format("{} of this project, not started from here", counted(load.unrecorded, "job")));
  }
  for (const OtherProject& other : load.others) {
    parts.push_back(fmt::format("{} of {}", counted(static_cast<std::size_t>(other.jobs), "job"),
                                visible_line(other.folder, 60)));
  }
  return join(parts, ", ");
}

std::string leases_text(const ServerLoad& load) {
  std::vector<std::string> parts;
  for (const Lease& lease : load.leases) {
    std::vector<std::string> what;
    if (!lease.gpus.empty()) {
      what.push_back(counted(lease.gpus.size(), "GPU"));
    }
    if (lease.cpus > 0) {
      what.push_back(counted(static_cast<std::size_t>(lease.cpus), "core"));
    }
    if (lease.memory > 0) {
      what.push_back(mebi_or_gibi(static_cast<double>(lease.memory)));
    }
    parts.push_back(visible_line(lease.user, 60) + (lease.waits ? " waits" : " " + join(what, " + ")));
  }
  return join(parts, ", ");
}

nlohmann::json to_json(const ServerLoad& load) {
  auto leases = nlohmann::json::array();
  for (const Lease& lease : load.leases) {
    leases.push_back({{"user", lease.user},
                      {"own", lease.own},
                      {"waits", lease.waits},
                      {"gpus", lease.gpus},
                      {"cpus", lease.cpus},
                      {"memory", lease.memory}});
  }
  auto others = nlohmann::json::array();
  for (const OtherProject& other : load.others) {
    others.push_back({{"folder", other.folder}, {"jobs", other.jobs}});
  }
  return {{"other_projects", others},
          {"unrecorded_jobs", load.unrecorded},
          {"leases", leases},
          {"cpus", load.cpus},
          {"load", load.load},
          {"cpu", or_null(load.cpu)},
          {"memory_total", or_null(load.memory_total)},
          {"memory_available", or_null(load.memory_available)},
          {"disk_total", or_null(load.disk_total)},
          {"disk_free", or_null(load.disk_free)}};
}

nlohmann::ordered_json top_json(const std::vector<ServerSample>& samples) {
  auto all = nlohmann::ordered_json::array();
  for (const ServerSample& sample : samples) {
    nlohmann::ordered_json entry = {{"server", sample.server}};
    put_error(entry, sample.error);
    entry["heard_at"] = sample.heard_at ? nlohmann::ordered_json(format_utc(*sample.heard_at)) : nullptr;
    // null instead of zero, if never reported.
    entry["load"] = sample.heard_at ? nlohmann::ordered_json(to_json(sample.load)) : nullptr;
    entry["gpus"] = sample.heard_at ? nlohmann::ordered_json(to_json(sample.gpus)["gpus"]) : nullptr;
    entry["gpu_tools"] = to_json(sample.gpus)["tools"];
    entry["jobs"] = nlohmann::ordered_json::array();
    for (const JobSample& one : sample.jobs) {
      nlohmann::ordered_json job = jobs::to_json(one.job);
      job["command"] = filled_command(one.job);
      job["last_line"] = or_null(one.last_line);
      entry["jobs"].push_back(std::move(job));
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace remote::cli
