#include "jobs/clean.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "jobs/protocol_parts.hpp"
#include "jobs/remote_folder.hpp"
#include "servers/fanout.hpp"
#include "ssh/connection.hpp"

namespace remote::jobs {
namespace {

std::vector<CleanResult::Entry> clean_on(ssh::Connection& connection, Store& store, const JobsAt& group,
                                         const Cancel& cancel) {
  ssh::ExecRequest request;
  request.what = "removal of " + counted(group.jobs.size(), "job");
  request.input = clean_script(group.folder, group.ids());
  request.timeout = std::chrono::minutes(10);  // output of terabytes takes a disk its time
  const std::vector<CleanReply> replies = parse_clean(connection.exec(request, cancel).out);
  std::vector<CleanResult::Entry> entries;
  std::vector<JobId> gone;
  for (const Job& job : group.jobs) {
    const auto reply =
        std::find_if(replies.begin(), replies.end(), [&](const CleanReply& one) { return one.id == job.id; });
    if (reply == replies.end()) {
      entries.push_back({job, false, "the server's answer does not name it"});
      continue;
    }
    if (reply->gone()) {
      gone.push_back(job.id);
    }
    entries.push_back({job, reply->gone(), reply->reason});
  }
  store.remove(gone);
  return entries;
}

}  // namespace

std::string clean_script(const RemoteFolder& folder, const std::vector<JobId>& ids,
                         const std::vector<Backend>& known) {
  std::string script = prelude(folder, "clean.sh", known, {"state"});
  for (const JobId& id : ids) {
    script += fmt::format("clean_one {}\n", id.text());
  }
  script += "clean_finish\n";
  return ssh::wrap_script(script);
}

std::vector<CleanReply> parse_clean(std::string_view out) {
  using Outcome = CleanReply::Outcome;
  std::vector<CleanReply> replies;
  read_lines(out, [&](std::string_view first, std::string_view rest) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    const auto id = JobId::parse(word);
    if (first != "clean" || !id || rest.size() == word.size()) {
      return false;
    }
    rest.remove_prefix(word.size() + 1);
    CleanReply reply;
    reply.id = *id;
    const std::string_view outcome = rest.substr(0, rest.find(' '));
    if (outcome.size() < rest.size()) {
      reply.reason = rest.substr(outcome.size() + 1);
    }
    if (outcome == "removed") {
      reply.outcome = Outcome::removed;
    } else if (outcome == "none") {
      reply.outcome = Outcome::none;
    } else if (outcome == "running") {
      reply.outcome = Outcome::running;
    } else if (outcome != "failed") {
      return false;
    }
    if (reply.gone() != reply.reason.empty()) {
      return false;
    }
    replies.push_back(std::move(reply));
    return true;
  });
  return replies;
}

CleanResult clean(const config::Config& config, Store& store, ssh::Connector& connector,
                  const std::vector<Job>& jobs, const Cancel& cancel) {
  CleanResult result;
  const std::vector<JobsAt> groups = by_place(jobs);
  const auto outcomes = servers::fan_out(
      groups, [](const JobsAt& group) { return group.server; },
      [&](const JobsAt& group, std::size_t) {
        const auto connection = connector.connect(server_of(config, group.jobs.front()), cancel);
        return clean_on(*connection, store, group, cancel);
      });
  for (const auto& outcome : outcomes) {
    if (outcome.ok()) {
      result.entries.insert(result.entries.end(), outcome.value->begin(), outcome.value->end());
    } else {
      result.errors.push_back(*outcome.error);
    }
  }
  std::sort(result.entries.begin(), result.entries.end(),
            [](const CleanResult::Entry& a, const CleanResult::Entry& b) { return a.job.key < b.job.key; });
  return result;
}

}  // namespace remote::jobs
