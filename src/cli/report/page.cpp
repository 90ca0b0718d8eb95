#include "cli/report/page.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <remote/verdict.hpp>

#include "base/clock.hpp"
#include "base/hashing.hpp"
#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/context.hpp"
#include "cli/report/sections.hpp"
#include "cli/show/bandwidth.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/sweeps.hpp"
#include "cli/show/verdict.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> visible(const std::vector<std::string>& lines) {
  std::vector<std::string> all;
  std::ranges::transform(lines, std::back_inserter(all),
                         [](const std::string& line) { return visible_text(line); });
  return all;
}

// Whether it was killed on request, and no job had failed by itself.
bool was_killed(const Report& report) {
  return std::ranges::none_of(report.jobs, has_failed) &&
         std::ranges::all_of(report.jobs, [](const Job& job) { return is_final(job.state); }) &&
         std::ranges::any_of(report.jobs, [](const Job& job) { return job.state == JobState::killed; });
}

// The summary of a failure at the top of the page; null if nothing failed.
Json cause_of(const Report& report) {
  if (was_killed(report)) {
    return nullptr;  // killed by the user: nothing went wrong
  }
  if (report.verdict && report.verdict->succeeded != report.verdict->total && report.verdict->left.empty()) {
    const Verdict& verdict = *report.verdict;
    return {{"title", verdict_headline(verdict)},
            {"lines", visible(verdict.last_lines)},
            {"rest", aftermath(verdict)},
            {"key", verdict.first ? Json(verdict.first->key) : Json(nullptr)}};
  }
  const auto failed = std::ranges::find_if(report.jobs, has_failed);
  if (failed == report.jobs.end()) {
    return nullptr;
  }
  const auto tail = std::ranges::find(report.tails, failed->key, &Tail::key);
  std::vector<std::string> lines;
  if (tail != report.tails.end()) {
    lines.assign(tail->err.end() - std::min<std::ptrdiff_t>(20, std::ssize(tail->err)), tail->err.end());
  }
  return {{"title", describe(*failed) + ": " + state_text(*failed)},
          {"lines", visible(lines)},
          {"rest", ""},
          {"key", failed->key}};
}

const char* look_of(const Report& report, const std::string& state) {
  if (state == "killed") {
    return "odd";
  }
  if (report.verdict) {
    return report.verdict->succeeded == report.verdict->total || !report.verdict->left.empty() ? "good"
                                                                                               : "bad";
  }
  return state == "succeeded"                   ? "good"
         : state == "failed" || state == "lost" ? "bad"
         : state == "running"                   ? "busy"
                                                : "";
}

std::string short_state(const Report& report) {
  if (was_killed(report)) {
    return "killed";
  }
  if (report.verdict) {
    return std::string(to_string(launch_state(report.jobs, *report.verdict)));
  }
  if (const auto failed = std::ranges::find_if(report.jobs, has_failed); failed != report.jobs.end()) {
    return std::string(to_string(failed->state));
  }
  const auto unfinished =
      std::ranges::find_if(report.jobs, [](const Job& job) { return !is_final(job.state); });
  return std::string(
      to_string(unfinished == report.jobs.end() ? report.jobs.front().state : unfinished->state));
}

// The label of a sweep's point: its values. null for other jobs, which are labeled by rank or key.
Json point_label(const Job& job) {
  return job.point ? Json(visible_line(sweep_point_text(job.point->values), 60)) : Json(nullptr);
}

Json curves_of(const Report& report) {
  Json all = Json::array();
  for (const Curve& curve : report.curves) {
    const auto job = std::ranges::find(report.jobs, curve.key, &Job::key);
    all.push_back({{"name", curve.name},
                   {"rank", or_null(curve.rank)},
                   {"key", curve.key},
                   {"label", job == report.jobs.end() ? Json(nullptr) : point_label(*job)},
                   {"color", curve.rank ? *curve.rank : job - report.jobs.begin()},
                   {"over", curve.over},
                   {"at", curve.at},
                   {"values", curve.values},
                   {"thinned", curve.thinned}});
  }
  return all;
}

Json jobs_of(const Report& report) {
  Json all = Json::array();
  for (const Job& job : report.jobs) {
    Json entry = jobs::to_json(job);
    entry["command"] = visible_line(filled_command(job));
    entry["label"] = point_label(job);
    entry["reason"] = visible_line(entry["reason"].get<std::string>());
    entry["failed_at_ms"] = is_final(job.state) && job.failed_at
                                ? Json(job.failed_at->time_since_epoch().count())
                                : Json(nullptr);
    entry["ranks"] = ranks_of(job);
    entry["state_text"] = visible_line(state_text(job));
    entry["ended"] = is_final(job.state);
    all.push_back(std::move(entry));
  }
  return all;
}

// JSON inside a <script>, escaped so that it can neither close the element nor start a comment.
std::string for_script(const Json& data) {
  std::string text;
  for (const char c : dump_json_line(data)) {
    text += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : c == '&' ? "\\u0026" : std::string(1, c);
  }
  return text;
}

std::string for_html(std::string_view plain) {
  std::string text;
  for (const char c : plain) {
    text += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return text;
}

}  // namespace

Json report_json(const Report& report, const std::string& project, bool watch) {
  const Job& first = report.jobs.front();
  const std::string state = short_state(report);
  const std::string used = usage_text(report.jobs);
  Json tails = Json::array();
  for (const Tail& tail : report.tails) {
    if (!tail.out.empty() || !tail.err.empty()) {
      const auto job = std::ranges::find(report.jobs, tail.key, &Job::key);
      tails.push_back({{"rank", or_null(tail.rank)},
                       {"key", tail.key},
                       {"label", job == report.jobs.end() ? Json(nullptr) : point_label(*job)},
                       {"out", visible(tail.out)},
                       {"err", visible(tail.err)}});
    }
  }
  std::vector<std::string> attempts;
  for (const Job& job : report.jobs) {
    std::ranges::transform(job.attempts, std::back_inserter(attempts), attempt_text);
  }
  Json problems = Json::array();
  Json errors = Json::array();
  if (const std::string notice = silence_notice(report.jobs); !notice.empty()) {
    problems.push_back(notice);
  }
  for (const Error& error : report.errors) {
    problems.push_back(error.message());
    errors.push_back({{"server", or_null(error.server())}});
    put_error(errors.back(), error);
  }
  return {{"project", project},
          {"title",
           fmt::format("{} {}: {}", first.launch ? "launch" : "job", first.key, visible_line(first.command))},
          {"launch", first.launch ? Json(first.launch->text()) : Json(nullptr)},
          {"state", state},
          {"look", look_of(report, state)},
          {"headline", fmt::format("{} on {}: {}{}", count_text(report.jobs), server_names(report.jobs),
                                   visible_line(state_text(report.jobs)), used.empty() ? "" : "; " + used)},
          {"cause", cause_of(report)},
          {"attempts", attempts},
          {"problems", std::move(problems)},
          {"errors", std::move(errors)},
          {"jobs", jobs_of(report)},
          {"timeline", timeline_json(report)},
          {"environment", environment_json(report)},
          {"gpus", gpus_json(report)},
          {"bandwidth", measured_json(report)},
          {"curves", curves_of(report)},
          {"tails", std::move(tails)},
          {"made_at", format_utc(report.made_at)},
          {"version", REMOTE_VERSION},
          {"watch", watch}};
}

std::string report_page(const Json& data, const Report& report) {
  const std::pair<std::string_view, std::string> parts[] = {
      {"UPLOT_CSS", std::string(report_part("uPlot.min.css"))},
      {"PAGE_CSS", std::string(report_part("page.css"))},
      {"UPLOT_LICENSE", for_html(report_part("LICENSE"))},
      {"DATA", for_script(data)},
      {"HEATMAP", report.bandwidth ? bandwidth_svg(report.bandwidth->network) : ""},
      {"UPLOT_JS", std::string(report_part("uPlot.iife.min.js"))},
      {"PAGE_JS", std::string(report_part("page.js"))},
      {"NONCE", random_hex(32)}};
  // Replaces marks in a single pass, because the inserted data may contain anything.
  std::string page;
  std::string_view rest = report_part("page.html");
  while (!rest.empty()) {
    const std::size_t mark = rest.find('@');
    const std::size_t end = mark == std::string_view::npos ? mark : rest.find('@', mark + 1);
    if (end == std::string_view::npos) {
      page += rest;
      break;
    }
    const std::string_view name = rest.substr(mark + 1, end - mark - 1);
    const auto part = std::ranges::find(parts, name, [](const auto& one) { return one.first; });
    page += rest.substr(0, mark);
    page += part == std::end(parts) ? "@" + std::string(name) : part->second;
    rest.remove_prefix(part == std::end(parts) ? end : end + 1);
  }
  return page;
}

}  // namespace remote::cli
