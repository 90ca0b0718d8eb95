#include "project/core.hpp"

#include "ssh/pool.hpp"

namespace remote::project {

Core::Core(config::Config configuration, Hooks given, std::unique_ptr<ssh::Connector> connector)
    : config(std::move(configuration)), store(config.local(config.jobs_folder)), hooks(std::move(given)) {
  if (connector) {
    connector_ = std::make_unique<ssh::Pool>(std::move(connector));
  }
  for (const std::string& warning : config.warnings) {
    tell(ConfigWarning{warning});
  }
}

ssh::Connector& Core::connector() {
  const std::lock_guard lock(connector_mutex_);
  if (!connector_) {
    ssh::ConnectorOptions options;
    options.ask = hooks.ask_secret;
    options.on_new_host_key = [this](const NewHostKey& key) { tell(key); };
    connector_ = std::make_unique<ssh::Pool>(ssh::make_connector(config, std::move(options)));
  }
  return *connector_;
}

void Core::tell(const Event& event) {
  if (hooks.on_event) {
    const std::lock_guard lock(callbacks_);
    hooks.on_event(event);
  }
}

}  // namespace remote::project
