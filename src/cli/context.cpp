#include "cli/context.hpp"

#include <algorithm>
#include <utility>

#include "base/files.hpp"

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

std::unique_ptr<ssh::Connector> Context::make_connector(const config::Config& config) {
  ssh::ConnectorOptions connector_options;
  connector_options.ask = [this](const std::string& prompt) { return terminal.ask_secret(prompt); };
  return environment_.make_connector(config, std::move(connector_options));
}

ssh::Connector& Context::connector() {
  const std::lock_guard lock(connector_mutex_);
  if (!connector_) {
    connector_ = make_connector(config());
  }
  return *connector_;
}

ssh::Connector& Context::quick_connector() {
  const std::lock_guard lock(connector_mutex_);
  if (!quick_connector_) {
    config::Config quick = config();
    quick.connect_timeout_s = std::min(quick.connect_timeout_s, 3);
    quick_connector_ = make_connector(quick);
  }
  return *quick_connector_;
}

void Context::show_new_host_keys() {
  const std::lock_guard lock(connector_mutex_);
  for (ssh::Connector* connector : {connector_.get(), quick_connector_.get()}) {
    if (connector == nullptr) {
      continue;
    }
    for (const ssh::NewHostKey& key : connector->take_new_host_keys()) {
      terminal.notice("new host key of " + key.server + " (" + key.host + ") accepted: " + key.type + " " +
                      key.fingerprint);
      if (!key.warning.empty()) {
        terminal.warning(key.warning);
      }
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
