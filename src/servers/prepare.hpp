#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "servers/sent_state.hpp"
#include "servers/sync.hpp"
#include "ssh/connection.hpp"
#include "wire/source.hpp"

// Prepares one server: Python environment, project files, packages. One round trip finds out which steps are
// already done, and these are skipped.

namespace remote::servers {

class Peers;
class SharedFolders;

struct PrepareSteps {
  bool setup = false;
  bool sync = false;
  bool packages = false;
  bool force = false;   // run setup and packages even if they are done
  bool verify = false;  // after the sync, compare contents and list differences
  bool remove = false;  // --delete: sync_options.remove lists files that were sent and no longer exist here
  SyncOptions sync_options = {};
  // The local state of the project before the transfer; if invalid, it is not recorded what was sent.
  std::shared_future<ProjectState> state = {};
  Peers* peers = nullptr;           // shared by all servers of a call, which send the project to each other
  SharedFolders* shared = nullptr;  // also shared: steps for servers with a common folder are done once
  std::string default_python = {};  // conda's Python version if configs.yaml has none
  std::optional<wire::ProjectSource> source = {};          // the sender of the project; nullopt: no transfer
  std::function<bool(const std::string&)> knows_job = {};  // whether it was started from this folder
};

// Receives the progress. Called on the server's thread.
class PrepareListener {
 public:
  virtual ~PrepareListener() = default;
  virtual void step(PrepareStep step) = 0;
  // Another server does the steps in the folder that both share.
  virtual void waits_for(const std::string& /*server*/) {}
  // The progress within the step; `fraction` is set if it is known.
  virtual void detail(const std::string& text, std::optional<double> fraction) = 0;
  // Files are being sent to the server; the numbers are for the whole transfer.
  virtual void transfer(const TransferProgress& progress) = 0;
  // A command failed. Gets the last lines of its stderr, and the location of its complete log. An Error
  // follows.
  virtual void failed_output(const std::string& last_lines, const std::string& log) = 0;
};

// Throws Error. The logs of the commands are kept in config.logs_folder.
PrepareReport prepare(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                      const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel);

}  // namespace remote::servers
