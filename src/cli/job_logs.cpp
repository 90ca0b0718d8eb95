#include "cli/job_logs.hpp"

#include <map>

#include <fmt/format.h>

#include "base/files.hpp"
#include "jobs/remote_folder.hpp"
#include "servers/fanout.hpp"
#include "servers/sync.hpp"

namespace remote::cli {
namespace {

struct Group {
  const config::Server* server;
  jobs::RemoteFolder folder;
  std::vector<std::string> ids;
};

}  // namespace

int bring_logs(Context& context, jobs::Store& store, const std::vector<jobs::Job>& jobs) {
  std::map<std::pair<std::string, jobs::RemoteFolder>, Group> by_place;
  int failed = 0;
  for (const jobs::Job& job : jobs) {
    // Logs that were brought after the job's end are whole: nothing can change them any more.
    if (jobs::is_final(job.state) && read_file_if_there(store.job_folder(job.id) / "complete")) {
      continue;
    }
    try {
      const jobs::RemoteFolder folder = jobs::remote_folder_of(job);
      Group& group = by_place[{job.server, folder}];
      group.server = &jobs::server_of(context.config(), job);
      group.folder = folder;
      group.ids.push_back(job.id);
    } catch (const Error& error) {
      context.show(error);
      ++failed;
    }
  }
  std::vector<Group> groups;
  for (auto& [place, group] : by_place) {
    groups.push_back(std::move(group));
  }
  const auto outcomes = servers::fan_out(
      groups, [](const Group& group) { return group.server->name; },
      [&](const Group& group, std::size_t) {
        const auto connection = context.connector().connect(*group.server, context.cancel);
        servers::PullOptions options;
        options.append = true;
        options.links = false;  // outputs are files; a link could make this machine read or write elsewhere
        options.filters.clear();
        for (const std::string& id : group.ids) {
          options.filters.push_back(fmt::format("+ /{}/", id));
        }
        for (const char* rule : {"+ job.out", "+ job.err", "- *"}) {
          options.filters.emplace_back(rule);
        }
        servers::sync_from(*connection, {group.folder.project + "/" + group.folder.jobs_folder + "/"},
                           store.folder(), options, context.cancel);
        return 0;
      });
  context.cancel.check();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!outcomes[i].ok()) {
      context.show(*outcomes[i].error);
      ++failed;
    }
  }
  if (failed == 0) {
    for (const jobs::Job& job : jobs) {
      if (jobs::is_final(job.state)) {
        write_file_atomic(store.job_folder(job.id) / "complete", "");
      }
    }
  }
  return failed;
}

}  // namespace remote::cli
