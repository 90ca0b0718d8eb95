#include "cli/job_logs.hpp"

#include <fmt/format.h>

#include "base/files.hpp"
#include "jobs/remote_folder.hpp"
#include "servers/fanout.hpp"
#include "servers/sync.hpp"

namespace remote::cli {

int bring_logs(Context& context, jobs::Store& store, const std::vector<jobs::Job>& jobs) {
  std::vector<jobs::Job> wanted;
  for (const jobs::Job& job : jobs) {
    // Logs that were brought after the job's end are whole: nothing can change them any more.
    if (!jobs::is_final(job.state) || !read_file_if_there(store.job_folder(job.id) / "complete")) {
      wanted.push_back(job);
    }
  }
  std::vector<Error> errors;
  const std::vector<jobs::JobsAt> groups = jobs::by_place(wanted);
  const auto outcomes = servers::fan_out(
      groups, [](const jobs::JobsAt& group) { return group.server; },
      [&](const jobs::JobsAt& group, std::size_t) {
        const config::Server& server = jobs::server_of(context.config(), group.jobs.front());
        const auto connection = context.connector().connect(server, context.cancel);
        servers::PullOptions options;
        options.append = true;
        options.links = false;  // outputs are files; a link could make this machine read or write elsewhere
        options.filters.clear();
        for (const JobId& id : group.ids()) {
          options.filters.push_back(fmt::format("+ /{}/", id.text()));
        }
        for (const char* rule : {"+ job.out", "+ job.err", "- *"}) {
          options.filters.emplace_back(rule);
        }
        servers::sync_from(*connection, {group.folder.project + "/" + group.folder.jobs_folder + "/"},
                           store.folder(), options, context.cancel);
        return 0;
      });
  for (const auto& outcome : outcomes) {
    if (!outcome.ok()) {
      errors.push_back(*outcome.error);
    }
  }
  for (const Error& error : errors) {
    context.show(error);
  }
  if (errors.empty()) {
    for (const jobs::Job& job : wanted) {
      if (jobs::is_final(job.state)) {
        write_file_atomic(store.job_folder(job.id) / "complete", "");
      }
    }
  }
  return static_cast<int>(errors.size());
}

}  // namespace remote::cli
