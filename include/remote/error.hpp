#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace remote {

// What an error means for the exit code: 1 for a failure, 2 for wrong usage or configuration.
enum class ErrorKind { failure, usage };

// Why something failed, for programs: what is not named here is `other`. In JSON by these names.
enum class Cause {
  other,
  unreachable,   // no way to the server, or the connection broke
  refused,       // the server does not want the connection, or another session on it
  timeout,       // no answer in time
  auth,          // the server takes no key and no password that there is
  host_key,      // the server's key has changed, or is not known
  permission,    // a file or folder may not be read or written
  not_found,     // a file, folder or program is not there
  disk_full,     // no space, no inodes, or the user's quota is used up
  no_resources,  // this machine allows no more open files, threads or memory
  usage,         // wrong usage or configuration
  interrupted,   // it was told to stop
};
std::string_view to_string(Cause cause);

// What would mend an error, where each program that uses the library does it in its own way.
enum class Remedy {
  none,
  make_project,     // the folder is no project yet, or it is another folder's
  add_server,       // the configuration names no server
  make_key,         // there is no such key file yet
  send_project,     // what the servers have differs from what is here
  choose_port,      // name a port for rank 0; remedy_detail() is a free one, if one is known
  pass_local_rank,  // give the local rank to the ranks by LOCAL_RANK, not by an argument
  start_job,        // there are no jobs
  start_launch,     // there are no launches
  name_job,         // it is a job and no launch; remedy_detail() is its key
  list_jobs,        // look at the jobs there are, or ask the servers again
  forget_job,       // remove its record here alone; remedy_detail() is its key
  list_launches,    // look at the launches on record
  authorize_key,    // the server does not take the key yet
  log_in,           // open an OpenSSH master, which can ask
  trust_settings,   // the user must allow what the project asks of this machine
  trust_folder,     // others can change the project's folder
  use_mpi_ssh,      // let mpirun reach the other servers by ssh
  share_folder,     // name a folder that all servers share, or let the ranks find each other otherwise
  use_env_method,   // let the ranks find each other by MASTER_ADDR and MASTER_PORT alone
  no_image,         // run this without a container
  skip_check,       // mend what was found on the servers, or launch without looking at it
  prepare_servers,  // the servers have no Python environment yet
  find_program,     // preparing the server finds the program, or names the reason why not
  start_sandbox,    // it is a practice server of this machine, which does not run
  name_servers,     // name the servers that are to take part
  check_server,     // look what is wrong with the server
  read_manual,      // read what is right; remedy_detail() is the page of the manual
  tell_more,        // let the program tell all that it does
  report_bug,       // it cannot happen: the program is wrong
  choose_code,      // take the code from git, or what is here now
  wait_for_turn,    // wait until others have given back what is needed
  resume_sweep,     // go on with the sweep; remedy_detail() is the key of one of its jobs
  rerun_failed,     // run those points of the sweep, too, that failed
  rerun_unknown,    // run points of the sweep elsewhere, when it is sure that nothing runs there any more
  overwrite_files,  // replace files that are newer on a server
  follow_job,       // name the job to follow; remedy_detail() is the key of the likely one, if there is one
};

// An error written for a person: what failed, on which server, why, and what to try.
// The library throws it. A program prints message() and hint(), says how remedy() is done with it, and picks
// its exit code by kind().
class Error : public std::exception {
 public:
  // The texts may quote anything: control characters are made visible, and each is cut at 4000 characters.
  Error(std::string_view what_failed, std::string_view reason, std::string_view hint = {},
        ErrorKind kind = ErrorKind::failure);

  // Wrong usage or configuration: exit code 2.
  static Error usage(std::string_view what_failed, std::string_view reason, std::string_view hint = {});

  // A copy with a remedy, which is told beside the hint.
  Error mended_by(Remedy remedy, std::string detail = {}) const;

  // A copy with a cause, unless it has one already.
  Error because(Cause cause) const;

  // A copy that names the server. A server that is already named stays.
  Error on(std::string server_name) const;

  const std::string& what_failed() const { return what_failed_; }
  const std::string& server() const { return server_; }
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }
  Remedy remedy() const { return remedy_; }
  const std::string& remedy_detail() const { return remedy_detail_; }
  ErrorKind kind() const { return kind_; }
  Cause cause() const { return cause_; }

  // "SERVER: WHAT: REASON" on one line, without the hint. Parts that are empty are left out.
  std::string message() const;
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string what_failed_;
  std::string server_;
  std::string reason_;
  std::string hint_;
  Remedy remedy_ = Remedy::none;
  std::string remedy_detail_;
  ErrorKind kind_;
  Cause cause_ = Cause::other;
  std::string text_;
};

// Thrown by whatever was told to stop through a Cancel token. It is no Error, so that no handler takes it for
// a failure.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace remote
