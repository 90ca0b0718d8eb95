#include <remote/project.hpp>

#include "project/core.hpp"

namespace remote {

using project::State;

std::filesystem::path Project::find(const std::filesystem::path& start) {
  return config::find_project(start);
}

Project::Project(const std::filesystem::path& folder, Hooks hooks)
    : state_(std::make_unique<State>(config::load(folder, hooks.strict), std::move(hooks))) {}
Project::Project(std::unique_ptr<State> state) : state_(std::move(state)) {}
Project project::project_of(std::unique_ptr<State> state) {
  return Project(std::move(state));
}
Project::~Project() {
  const SigpipeGuard guard;
  state_.reset();  // closes its connections properly
}
Project::Project(Project&&) noexcept = default;
Project& Project::operator=(Project&&) noexcept = default;

const std::filesystem::path& Project::folder() const {
  return state_->config.project;
}

const std::string& Project::name() const {
  return state_->config.name;
}

std::vector<std::string> Project::server_names(const std::vector<std::string>& globs) const {
  std::vector<std::string> names;
  for (const config::Server& server : config::select_servers(state_->config, globs)) {
    names.push_back(server.name);
  }
  return names;
}

LaunchDefaults Project::launch_defaults(const std::string& name) const {
  return config::launch_settings(state_->config, name);
}

std::vector<std::string> Project::launch_names() const {
  return config::launch_names(state_->config);
}

const std::filesystem::path& Project::jobs_folder() const {
  return state_->store_folder;
}

}  // namespace remote
