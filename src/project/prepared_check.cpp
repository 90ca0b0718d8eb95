#include "project/prepared_check.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/log.hpp"
#include "base/simple_commands.hpp"
#include "servers/container.hpp"

namespace remote::project {
std::optional<servers::PackageSources> find_package_sources(const config::Config& config) {
  try {
    return servers::package_source(config) == PackageSource::none
               ? std::nullopt
               : std::optional(servers::package_sources(config));
  } catch (const Error& error) {
    log_info("", "packages: {}", error.message());
    return std::nullopt;
  }
}

Finding old_packages(const std::string& server) {
  return {"packages", CheckStatus::warn, "they are older than the project's files: remote prepare",
          Fix{Fix::Where::here, "remote prepare --server " + server}};
}

PreparedCheck::PreparedCheck(const config::Config& config, std::string command, Env env,
                             std::optional<std::string> image)
    : config_(config),
      command_(std::move(command)),
      env_(std::move(env)),
      image_(std::move(image)),
      packages_(find_package_sources(config)) {}

// The Python that the command starts with, if it is selected by the environment and PATH on the server.
std::string PreparedCheck::needed_program(const config::Server& server) const {
  const auto sets_path = [](const Env& env) {
    return std::ranges::count(env, "PATH", &Env::value_type::first) > 0;
  };
  if (servers::container_of(server, image_) || sets_path(env_) || sets_path(server.variables()) ||
      !is_plain_command(command_)) {
    return "";
  }
  const std::string first = command_.substr(0, first_word_length(command_));
  return first == "python" || first == "python3" ? first : "";
}

void PreparedCheck::add_to(wire::FactsRequest& wanted, const config::Server& server) const {
  wanted.environment = servers::environment_folder(config_, server);
  wanted.variables = servers::to_wire(server.variables());
  wanted.activate = servers::activation(config_, server);
  // The nodes of a Slurm cluster may have other programs than the login node.
  if (const std::string program = needed_program(server); !program.empty() && !server.slurm) {
    wanted.program = program;
  }
  if (servers::container_of(server, image_)) {
    return;
  }
  if (packages_) {
    wanted.packages = servers::packages_stamp(config_, server, *packages_);
  }
  wanted.environments = servers::needed_environments(config_, server);
}

void PreparedCheck::judge(const wire::FactsReply& answer, const config::Server& server, bool is_gone,
                          std::vector<CheckWarned>& warnings, std::vector<Error>& errors) const {
  const Fix prepare{Fix::Where::here, "remote prepare --server " + server.name};
  const auto refuse = [&](const std::string& reason, Remedy remedy = Remedy::prepare_servers) {
    errors.push_back(cannot_run(reason).mended_by(remedy).on(server.name));
  };
  if (is_gone) {
    refuse("the project was sent there from here, but its files are gone");
    return;  // its environment is gone too
  }
  if (!answer.missing.empty()) {
    const bool is_system = config_.python.manager == config::PythonManager::system;
    refuse(fmt::format("there is no program '{}', and the project's Python environment does not provide it",
                       answer.missing),
           is_system ? Remedy::find_program : Remedy::prepare_servers);
  } else if (answer.lacks_environment && needed_program(server).empty()) {
    add_warning(warnings, server.name,
                {"environment", CheckStatus::warn,
                 "the project's Python environment is not there: remote prepare", prepare});
  } else if (answer.lacks_environment) {
    refuse(servers::no_environment);
  }
  if (answer.has_old_packages) {
    add_warning(warnings, server.name, old_packages(server.name));
  }
}

Error cannot_run(const std::string& reason, const std::string& hint) {
  return Error("it cannot run there", reason, hint);
}

void add_warning(std::vector<CheckWarned>& warnings, const std::string& server, const Finding& finding) {
  const auto same = std::ranges::find_if(warnings, [&](const CheckWarned& told) {
    return told.finding.name == finding.name && told.finding.detail == finding.detail;
  });
  if (same == warnings.end()) {
    warnings.push_back({{server}, finding});
  } else {
    same->servers.push_back(server);
  }
}

void report_unfit(Core& core, const std::vector<CheckWarned>& warnings, const std::vector<Error>& errors) {
  for (const CheckWarned& warning : warnings) {
    core.tell(warning);
  }
  if (!errors.empty()) {
    core.tell(PartsFailed{errors});
    throw Error("nothing was started", "its servers are not ready for it").mended_by(Remedy::skip_check);
  }
}

}  // namespace remote::project
