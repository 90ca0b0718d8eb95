// The shared file of a launch, tested on all servers before anything starts.

#include "project/init_file.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "servers/fanout.hpp"
#include "servers/init_file.hpp"

namespace remote::project {

InitFile::InitFile(Core& core, const std::vector<config::Server>& servers, const std::string& folder,
                   const JobId& launch)
    : core_(core), first_(servers.front()), folder_(folder), launch_(launch) {
  try {
    make(servers);
  } catch (...) {
    drop();
    throw;
  }
}

InitFile::~InitFile() {
  if (!kept_) {
    drop();
  }
}

std::string InitFile::place_on(const config::Server& server) const {
  if (folder_.starts_with('/') || folder_ == "~" || folder_.starts_with("~/")) {
    return folder_;
  }
  const RemoteFolder there = jobs::remote_folder_for(core_.config, server);
  return there.project + "/" + (folder_.empty() ? there.jobs_folder : folder_);
}

void InitFile::make(const std::vector<config::Server>& servers) {
  const auto take = [&](const config::Server& server, const wire::InitFileReply& answer) {
    if (!answer.failure.empty()) {
      throw Error("cannot use the shared file", answer.failure)
          .mended_by(Remedy::share_folder)
          .on(server.name);
    }
    return answer.folder;
  };
  std::vector<Error> errors;
  const auto look = [&](const std::vector<config::Server>& some, const auto& check) {
    const auto outcomes =
        servers::fan_out(some, &config::Server::name, [&](const config::Server& server, std::size_t) {
          const auto connection = core_.connector().connect(server, core_.cancel());
          return take(server, check(*connection, server));
        });
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (outcomes[i].ok()) {
        folders_[some[i].name] = *outcomes[i].value;
      }
    }
    errors = servers::errors_of(outcomes);
  };
  look({first_}, [&](ssh::Connection& connection, const config::Server& server) {
    return servers::make_init_file(connection, place_on(server), launch_, folder_.empty(), core_.cancel());
  });
  if (errors.empty()) {
    look({servers.begin() + 1, servers.end()},
         [&](ssh::Connection& connection, const config::Server& server) {
           return servers::see_init_file(connection, place_on(server), launch_, first_.name, core_.cancel());
         });
  }
  if (!errors.empty()) {
    core_.tell(PartsFailed{errors});
    throw Error("nothing was started", "the ranks need a file that all servers can see")
        .mended_by(Remedy::share_folder);
  }
}

void InitFile::drop() {
  try {
    // Must also run after Ctrl-C.
    const auto connection =
        core_.connector().connect(first_, Cancel(), std::chrono::ceil<std::chrono::seconds>(ask_limit));
    servers::drop_init_file(*connection, place_on(first_), launch_, Cancel());
  } catch (const std::exception& error) {
    log_info(first_.name, "the launch's folder .remote-init-{} was not removed: {}", launch_.text(),
             error.what());
  }
}

}  // namespace remote::project
