#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/jobs.hpp"

namespace remote::wire {

// Removes everything that remote has installed for this user, unless jobs are running.
struct UninstallRequest {
  static constexpr std::string_view kind = "uninstall";

  JobsPlace place;
  std::string agent_folder{};         // from configs.yaml, or ""
  bool dry_run = false;               // remove nothing
  std::vector<std::string> shared{};  // folders shared by all users of the server

  static constexpr auto fields() {
    using R = UninstallRequest;
    return field_list(field("place", &R::place), field("agent_folder", &R::agent_folder, at_most(4096)),
                      field("dry_run", &R::dry_run), field("shared", &R::shared, at_most(4096)));
  }
};

// A running job of this user, or a running lifeline or sweep.
struct RunningJob {
  std::optional<std::string> id{};  // only for a job
  std::optional<int> pid{};
  std::string project{};  // its folder, or "" if unknown

  static constexpr auto fields() {
    return field_list(field("id", &RunningJob::id, an_id()),
                      field("pid", &RunningJob::pid, in_range(1, 1 << 30)),
                      field("project", &RunningJob::project, a_line(4000)));
  }
};

// See UninstallResult::Leftover::Reason.
enum class LeftReason { failed, link, foreign, unknown, recent, unfinished, unmoved, lease, results };

struct LeftPath {
  LeftReason reason = LeftReason::failed;
  std::string path;

  static constexpr auto fields() {
    return field_list(field("reason", &LeftPath::reason), field("path", &LeftPath::path, a_line(4000)));
  }
};

constexpr std::size_t max_uninstalled = 1000;

struct UninstallReply {
  static constexpr std::string_view kind = "uninstall";

  std::vector<RunningJob> running{};   // in any project; if there are any, nothing is removed
  std::vector<std::string> removed{};  // in a dry run: would be removed
  std::vector<LeftPath> left{};

  static constexpr auto fields() {
    using R = UninstallReply;
    return field_list(field("running", &R::running, at_most(max_jobs)),
                      field("removed", &R::removed, a_line(4000)),
                      field("left", &R::left, at_most(max_uninstalled)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::LeftReason> = {
    std::string_view("failed"),  std::string_view("link"),   std::string_view("foreign"),
    std::string_view("unknown"), std::string_view("recent"), std::string_view("unfinished"),
    std::string_view("unmoved"), std::string_view("lease"),  std::string_view("results")};
