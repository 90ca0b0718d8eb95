#include "cli/context.hpp"

#include <utility>

#include "base/files.hpp"
#include "ssh/pool.hpp"

namespace remote::cli {
namespace fs = std::filesystem;

Context::Context(Environment environment)
    : cancel(environment.cancel), terminal(environment.streams), environment_(std::move(environment)) {}

fs::path Context::project() const {
  if (!options.project) {
    return config::find_project(fs::current_path());
  }
  fs::path folder = fs::absolute(expand_home(*options.project)).lexically_normal();
  if (!fs::exists(folder / ".remote/configs.yaml")) {
    throw Error::usage("--project " + *options.project, "there is no .remote/configs.yaml in it",
                       "run `remote init` there first");
  }
  return folder;
}

const config::Config& Context::config() {
  const std::lock_guard lock(config_mutex_);
  if (!config_) {
    config_ = config::load(project());
    for (const std::string& warning : config_->warnings) {
      terminal.warning(warning);
    }
  }
  return *config_;
}

std::vector<config::Server> Context::servers(const std::vector<std::string>& globs) {
  return config::select_servers(config(), globs);
}

ssh::Connector& Context::connector() {
  const std::lock_guard lock(connector_mutex_);
  if (!connector_) {
    ssh::ConnectorOptions connector_options;
    connector_options.ask = [this](const std::string& prompt) { return terminal.ask_secret(prompt); };
    connector_options.on_new_host_key = [this](const ssh::NewHostKey& key) {
      const std::lock_guard keys_lock(keys_mutex_);
      new_keys_.push_back(key);
    };
    connector_ =
        std::make_unique<ssh::Pool>(environment_.make_connector(config(), std::move(connector_options)));
  }
  return *connector_;
}

void Context::show_new_host_keys() {
  const std::lock_guard lock(keys_mutex_);
  for (const ssh::NewHostKey& key : std::exchange(new_keys_, {})) {
    terminal.notice("new host key of " + key.server + " (" + key.host + ") accepted: " + key.type + " " +
                    key.fingerprint);
    if (!key.warning.empty()) {
      terminal.warning(key.warning);
    }
  }
}

void Context::show(const Error& error) {
  terminal.err(terminal.paint_err(ui::Style::red, "error:") + " " + error.message() + "\n");
  if (!error.hint().empty()) {
    terminal.err(terminal.paint_err(ui::Style::cyan, " hint:") + " " + error.hint() + "\n");
  }
}

}  // namespace remote::cli
