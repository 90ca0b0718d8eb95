#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "config/config.hpp"
#include "ssh/connector.hpp"
#include "ui/terminal.hpp"

namespace remote::cli {

// The options that every command takes.
struct GlobalOptions {
  std::optional<std::string> project;
  std::string color = "auto";
  bool verbose = false;
  bool quiet = false;
  bool json = false;
};

// What a command meets around it: this process's streams and the real servers, unless a test brings its own.
struct Environment {
  ui::Streams streams;
  Cancel cancel;  // stops the command
  std::function<std::unique_ptr<ssh::Connector>(const config::Config&, ssh::ConnectorOptions)>
      make_connector = ssh::make_connector;
};

// What a command has at hand. Made once by cli.cpp; outlives the command. config() and connector() may be
// asked for on several threads at once: whoever comes first makes them.
class Context {
 public:
  explicit Context(Environment environment = {});

  GlobalOptions options;
  Cancel cancel;
  ui::Terminal terminal;  // where to print: data to stdout, notices and errors to stderr
  int exit_code = 0;      // set by the command that ran

  // The project's folder: --project, or found by walking up from the current folder. Throws Error (usage).
  std::filesystem::path project() const;
  // Its configuration; prints the warnings to stderr once.
  const config::Config& config();
  // The servers that --server globs name, all without any. Throws Error (usage).
  std::vector<config::Server> servers(const std::vector<std::string>& globs);
  // The connections of this command; asks for secrets on the terminal.
  ssh::Connector& connector();
  // Prints the host keys that were accepted on first use, if any. Call after connecting.
  void show_new_host_keys();

  // Prints an error: message, hint.
  void show(const Error& error);

 private:
  const Environment environment_;
  std::mutex config_mutex_;
  std::mutex connector_mutex_;  // taken before the other
  std::optional<config::Config> config_;
  std::mutex keys_mutex_;
  std::vector<ssh::NewHostKey> new_keys_;
  std::unique_ptr<ssh::Connector> connector_;
};

}  // namespace remote::cli
