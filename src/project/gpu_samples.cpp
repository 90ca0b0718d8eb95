#include "project/gpu_samples.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"

namespace remote::project {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_name = 100;
constexpr std::uintmax_t most_sample_bytes = 64U << 20U;

std::filesystem::path samples_folder(const config::Config& config) {
  return config.local(".remote/samples");
}

std::string line_of(const ServerSample& sample, Instant at) {
  Json gpus = Json::array();
  for (const Gpu& gpu : sample.gpus.gpus) {
    if (gpus.size() < GpuSamples::most_gpus) {
      gpus.push_back({gpu.index, or_null(gpu.utilisation), or_null(gpu.memory_used),
                      or_null(gpu.memory_total), visible_line(gpu.name, longest_name)});
    }
  }
  return dump_json_line(Json{{"at", at.time_since_epoch().count()}, {"gpus", std::move(gpus)}}) + "\n";
}

void append(const std::filesystem::path& file, const std::string& line) {
  const UniqueFd fd = open_regular(file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!fd || !write_all(fd.get(), line)) {
    throw Error("cannot write " + file.string(), std::generic_category().message(errno));
  }
}

// Drops the older half if there are too many lines. Only reads the file if lines of this length would be too
// many.
void shorten(const std::filesystem::path& file, std::size_t line_length) {
  std::error_code error;
  if (const auto size = std::filesystem::file_size(file, error);
      error || size / line_length <= GpuSamples::most_lines) {
    return;
  }
  const std::string text = read_file(file);
  auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (lines <= GpuSamples::most_lines && text.size() <= most_sample_bytes) {
    return;
  }
  std::size_t from = 0;
  for (; lines > GpuSamples::most_lines / 2; --lines) {
    from = text.find('\n', from) + 1;
  }
  write_file_atomic(file, std::string_view(text).substr(from), 0600);
}

double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// When a sample was taken; nullopt if the line is invalid.
std::optional<Instant> instant_of(const Json& line) {
  const bool known = line.is_object() && line.contains("at") && line["at"].is_number_integer();
  return known ? std::optional(Instant(std::chrono::seconds(line["at"].get<std::int64_t>()))) : std::nullopt;
}

// When the last sample was taken; the epoch if there is none.
Instant last_in(const std::filesystem::path& path) {
  constexpr off_t enough = 65536;
  const UniqueFd fd = open_regular(path, O_RDONLY | O_NOFOLLOW);
  const off_t size = fd ? ::lseek(fd.get(), 0, SEEK_END) : 0;
  std::string text(static_cast<std::size_t>(std::min(std::max<off_t>(size, 0), enough)), '\0');
  const ssize_t count =
      text.empty() ? 0 : ::pread(fd.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  Instant last;
  for (const std::string& line : split(text, '\n')) {
    last = instant_of(Json::parse(line, nullptr, false)).value_or(last);
  }
  return last;
}

// Adds the values in a line to the curves of its server, by index.
void take(const std::string& line, Instant from, Instant to, std::map<int, GpuCurve>& curves) {
  const Json json = Json::parse(line, nullptr, false);
  const std::optional<Instant> at = instant_of(json);
  if (!at || *at < from || *at > to || !json.contains("gpus") || !json["gpus"].is_array() ||
      json["gpus"].size() > GpuSamples::most_gpus) {
    return;
  }
  for (const Json& gpu : json["gpus"]) {
    if (!gpu.is_array() || gpu.size() != 5 || !gpu[0].is_number_integer() || !gpu[4].is_string() ||
        curves.size() > GpuSamples::most_gpus) {
      continue;
    }
    GpuCurve& curve = curves[gpu[0].get<int>()];
    if (!curve.at.empty() && curve.at.back() >= *at) {
      continue;  // two programs took samples
    }
    curve.name = gpu[4].get<std::string>();
    curve.memory_total = gpu[3].is_number_unsigned() ? gpu[3].get<std::uint64_t>() : curve.memory_total;
    curve.at.push_back(*at);
    curve.use.push_back(number_of(gpu[1]));
    curve.memory.push_back(number_of(gpu[2]));
  }
}

// The stored samples of a server; "" if unreadable.
std::string kept_text(const config::Config& config, const std::string& server) {
  try {
    return read_beneath(samples_folder(config), server, most_sample_bytes).value_or("");
  } catch (const Error& error) {
    log_info(server, "{}", error.message());
    return "";
  }
}

void thin(GpuCurve& curve, std::size_t most_points) {
  const std::size_t every = (curve.at.size() + most_points - 1) / most_points;
  if (every < 2) {
    return;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < curve.at.size(); i += every, ++kept) {
    curve.at[kept] = curve.at[i];
    curve.use[kept] = curve.use[i];
    curve.memory[kept] = curve.memory[i];
  }
  curve.at.resize(kept);
  curve.use.resize(kept);
  curve.memory.resize(kept);
}

}  // namespace

GpuSamples::GpuSamples(const config::Config& config) : folder_(samples_folder(config)) {}

void GpuSamples::keep(const ServerSample& sample) {
  const bool runs = std::ranges::any_of(
      sample.jobs, [](const JobSample& one) { return one.job.state == JobState::running; });
  if (sample.error || !sample.heard_at || sample.gpus.gpus.empty() || !runs) {
    return;
  }
  try {
    if (is_link(folder_)) {
      return;  // a project may contain a link that points anywhere
    }
    const std::filesystem::path file = folder_ / sample.server;
    // A last sample in the future is from before the clock was set back.
    const auto is_early = [&](Instant last) {
      return *sample.heard_at >= last && *sample.heard_at < last + spacing;
    };
    Instant& last = last_[sample.server];
    if (is_early(last)) {
      return;
    }
    make_folders(folder_, 0700);
    if (!is_there(folder_ / ".gitignore")) {
      write_file_atomic(folder_ / ".gitignore", "*\n", 0600);
    }
    const auto lock = FileLock::try_lock(folder_ / ".lock");
    if (!lock) {
      return;  // another program is storing its sample
    }
    last = last_in(file);  // may be from another program
    if (is_early(last)) {
      return;
    }
    last = *sample.heard_at;
    const std::string line = line_of(sample, *sample.heard_at);
    append(file, line);
    shorten(file, line.size());
  } catch (const std::exception& error) {
    log_info(sample.server, "the use of its GPUs is not kept: {}", error.what());
  }
}

std::vector<GpuCurve> kept_samples(const config::Config& config, const std::vector<std::string>& servers,
                                   Instant from, Instant to, std::size_t most_points) {
  std::vector<GpuCurve> all;
  for (const std::string& server : servers) {
    // The name is from a job's record, which may have come with the project.
    const std::string text = config::valid_server_name(server) ? kept_text(config, server) : "";
    std::map<int, GpuCurve> curves;
    for (const std::string& line : split(text, '\n')) {
      take(line, from, to, curves);
    }
    for (auto& [index, curve] : curves) {
      curve.server = server;
      curve.index = index;
      thin(curve, most_points);
      all.push_back(std::move(curve));
    }
  }
  return all;
}

}  // namespace remote::project
