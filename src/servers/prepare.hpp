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

// Makes one server ready: Python environment, project files, packages. One round trip finds out what is done
// already, and that is skipped.

namespace remote::servers {

class Peers;
class SharedFolders;

struct PrepareSteps {
  bool setup = false;
  bool sync = false;
  bool packages = false;
  bool force = false;   // do setup and packages although they are done
  bool verify = false;  // after the sync, compare contents and name what differs
  bool remove = false;  // --delete: sync_options.remove is what was sent and is gone here
  SyncOptions sync_options = {};
  // The project as it is here before anything is sent; invalid: it is not remembered what was sent.
  std::shared_future<ProjectState> state = {};
  Peers* peers = nullptr;           // shared by all servers of a call: they bring the project to each other
  SharedFolders* shared = nullptr;  // the same: what servers with one folder need is done once
  std::string default_python = {};  // conda's version where configs.yaml names none
  std::optional<wire::ProjectSource> source = {};          // the sender of the project; nullopt: no transfer
  std::function<bool(const std::string&)> knows_job = {};  // whether a job with this id is recorded here
};

// Hears of the progress; called on the thread of the server.
class PrepareListener {
 public:
  virtual ~PrepareListener() = default;
  virtual void step(PrepareStep step) = 0;
  // Another server does the steps in the folder that both have.
  virtual void waits_for(const std::string& /*server*/) {}
  // What the step is at; `fraction` of it, where that is known.
  virtual void detail(const std::string& text, std::optional<double> fraction) = 0;
  // Files are going to the server; the figures are those of the whole transfer.
  virtual void transfer(const TransferProgress& progress) = 0;
  // A command failed: the last lines of its stderr, and where its whole log is. An Error follows.
  virtual void failed_output(const std::string& last_lines, const std::string& log) = 0;
};

// Throws Error. Logs of what ran are kept under config.logs_folder.
PrepareReport prepare(ssh::Connection& connection, const config::Config& config, const config::Server& server,
                      const PrepareSteps& steps, PrepareListener& listener, const Cancel& cancel);

}  // namespace remote::servers
