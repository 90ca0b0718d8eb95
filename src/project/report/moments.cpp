#include "project/report/moments.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "jobs/job_fields.hpp"
#include "jobs/job_json.hpp"

namespace remote::project {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view of_torchrun = "remote: the workers begin anew (restart ";
constexpr std::string_view of_launch = "remote: the ranks begin anew (restart ";
constexpr std::string_view of_slurm = "remote: Slurm begins this job anew (restart ";
// If following starts when a job is older than this, it may have written output before.
constexpr std::chrono::seconds fresh{10};
constexpr int newest_moments_version = 1;
constexpr std::uintmax_t most_moments_bytes = 1U << 20U;

Moment moment(const Job& job, Moment::Kind kind) {
  Moment one{.kind = kind, .key = job.key, .rank = job.rank, .server = job.server, .text = {}};
  one.exact = job.failed_at.has_value();
  one.at = job.failed_at.value_or(end_of(job));
  return one;
}

std::filesystem::path first_file(const jobs::Store& store, const std::vector<Job>& jobs) {
  return store.job_folder(jobs.front().id) / "first_output.json";
}

// "2026-11-21T07:30:00Z" or "2026-11-21T07:30:00.123Z"
std::optional<ExactInstant> parse_instant(std::string_view text) {
  constexpr std::size_t whole = 19;
  std::optional<int> ms = 0;
  if (text.size() == whole + 5 && text[whole] == '.') {
    ms = parse_number<int>(text.substr(whole + 1, 3));
  } else if (text.size() != whole + 1) {
    return std::nullopt;
  }
  const auto seconds = parse_utc(std::string(text.substr(0, whole)) + "Z");
  return seconds && ms && *ms >= 0 && text.ends_with('Z')
             ? std::optional(*seconds + std::chrono::milliseconds(*ms))
             : std::nullopt;
}

}  // namespace

std::vector<Moment> moments_of(const std::vector<Job>& jobs) {
  std::vector<Moment> all;
  for (const Job& job : jobs) {
    Moment one;
    if (job.state == JobState::failed) {
      one = moment(job, Moment::Kind::failed);
    } else if (job.state == JobState::killed) {
      one = moment(job, Moment::Kind::killed);
    } else if (job.state == JobState::lost) {
      one = moment(job, Moment::Kind::lost);
    } else {
      continue;
    }
    one.text = job.result ? job.result->describe() : "";
    if (const std::string reason = jobs::reason_text(job.reason); !reason.empty()) {
      one.text += (one.text.empty() ? "" : ", ") + reason;
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::optional<Moment> moment_in(std::string_view line) {
  Moment one{.kind = Moment::Kind::restarted, .rank = {}, .server = {}, .text = {}};
  std::string_view begin = of_torchrun;
  if (line.starts_with(of_slurm)) {
    one.kind = Moment::Kind::requeued;
    begin = of_slurm;
  } else if (line.starts_with(of_launch)) {
    begin = of_launch;
  } else if (!line.starts_with(of_torchrun)) {
    return std::nullopt;
  }
  line.remove_prefix(begin.size());
  const std::size_t close = line.find(") at ");
  const auto number = parse_number<int>(line.substr(0, close));
  line = close == std::string_view::npos ? std::string_view() : line.substr(close + 5);
  const std::string_view why = line.substr(std::min(line.find(' '), line.size()));  // " after rank 3: exit 1"
  const auto at = parse_instant(line.substr(0, line.size() - why.size()));
  if (!number || *number < 0 || !at || !(why.empty() || why.starts_with(" after "))) {
    return std::nullopt;
  }
  one.at = *at;
  one.exact = one.kind == Moment::Kind::restarted;
  one.text = fmt::format("restart {}{}", *number, why);
  return one;
}

FirstOutputs::FirstOutputs(const jobs::Store& store, const std::vector<Job>& jobs)
    : store_(store), jobs_(jobs), firsts_(jobs.size()) {
  const ExactInstant now = now_milliseconds();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    firsts_[i].fresh = now - jobs[i].created_at <= fresh;
  }
}

FirstOutputs::~FirstOutputs() {
  try {
    Json all = Json::object();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (firsts_[i].at) {
        all[jobs_[i].id.text()] = firsts_[i].at->time_since_epoch().count();
      }
    }
    if (!all.empty()) {
      write_file_atomic(first_file(store_, jobs_),
                        dump_json(Json{{"version", newest_moments_version}, {"at_ms", all}}), 0600);
    }
  } catch (const std::exception& error) {
    log_info("", "the time of the first output is not kept: {}", error.what());
  }
}

void FirstOutputs::note(std::size_t index) {
  if (index < firsts_.size() && firsts_[index].fresh && !firsts_[index].at) {
    firsts_[index].at = now_milliseconds();
  }
}

std::vector<Moment> first_outputs(const jobs::Store& store, const std::vector<Job>& jobs) {
  std::vector<Moment> all;
  const Json json =
      read_own_json(store.folder(), first_file(store, jobs), newest_moments_version, most_moments_bytes)
          .value_or(Json());
  const Json moments = json.is_object() ? json.value("at_ms", Json()) : Json();
  for (const Job& job : jobs) {
    const auto found = moments.find(job.id.text());  // also end() if it is not an object
    if (found != moments.end() && found->is_number_unsigned()) {
      all.push_back({.kind = Moment::Kind::first_output,
                     .at = ExactInstant(std::chrono::milliseconds(found->get<std::int64_t>())),
                     .exact = true,
                     .key = job.key,
                     .rank = job.rank,
                     .server = job.server,
                     .text = {}});
    }
  }
  return all;
}

}  // namespace remote::project
