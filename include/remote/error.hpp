#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace remote {

// Decides the exit code: 1 for a failure, 2 for wrong usage or configuration.
enum class ErrorKind { failure, usage };

// Why something failed, for programs; `other` if no other value fits. JSON uses the same names.
enum class Cause {
  other,
  unreachable,   // cannot reach the server, or the connection broke
  refused,       // the server refused the connection, or another session on it
  timeout,       // no answer in time
  auth,          // the server rejected every key and password
  host_key,      // the server's key has changed, or is unknown
  permission,    // no permission to read or write a file or folder
  not_found,     // a file, folder or program does not exist
  disk_full,     // no space, no inodes, or the user's quota is used up
  no_resources,  // this machine is out of file descriptors, threads or memory
  usage,         // wrong usage or configuration
  interrupted,   // it was cancelled
};
std::string_view to_string(Cause cause);

// How to fix an error. Each program that uses the library words this in terms of its own commands or calls.
enum class Remedy {
  none,
  make_project,     // the folder is not a project, or belongs to another folder's project
  add_server,       // the configuration has no servers
  make_key,         // the key file does not exist yet
  send_project,     // the servers' files differ from those here
  choose_port,      // set the port of rank 0; remedy_detail() is a free port, if one is known
  pass_local_rank,  // pass the local rank to the ranks in LOCAL_RANK, not as an argument
  start_job,        // there are no jobs
  start_launch,     // there are no launches
  name_job,         // it is a job, not a launch; remedy_detail() is its key
  list_jobs,        // list the jobs, or ask the servers again
  forget_job,       // remove only the record on this machine; remedy_detail() is its key
  list_launches,    // list the recorded launches
  authorize_key,    // the server does not accept the key yet
  log_in,           // open an OpenSSH master, which can prompt
  trust_settings,   // the user must allow the project's demands on this machine
  trust_folder,     // other users can change the project's folder
  use_mpi_ssh,      // let mpirun connect to the other servers by ssh
  share_folder,     // use a folder that all servers share, or another init method
  use_env_method,   // initialize by MASTER_ADDR and MASTER_PORT only
  no_image,         // run this without a container
  skip_check,       // fix the findings on the servers, or launch without checking
  prepare_servers,  // the servers have no Python environment yet
  find_program,     // prepare the server: this finds the program, or reports why it cannot
  start_sandbox,    // it is a practice server on this machine that is not running
  name_servers,     // name the servers to use
  check_server,     // diagnose the server
  read_manual,      // read the documentation; remedy_detail() is the page of the manual
  tell_more,        // run with more verbose output
  report_bug,       // an internal error, to be reported as a bug
  choose_code,      // choose between the code in git and the current files
  wait_for_turn,    // wait until other jobs have released the resources
  resume_sweep,     // continue the sweep; remedy_detail() is the key of one of its jobs
  rerun_failed,     // also rerun the points of the sweep that failed
  rerun_unknown,    // rerun points of the sweep on other servers, once it is certain that they no longer run
  overwrite_files,  // overwrite files that are newer on a server
  follow_job,   // name the job to follow; remedy_detail() is the key of the most likely one, if there is one
  name_script,  // name the command's script so, in remedy_detail(), or start it without checking
};

// An error for the user: what failed, on which server, why, and what to try. The library throws it. A program
// prints message() and hint(), explains remedy() in its own terms, and derives its exit code from kind().
class Error : public std::exception {
 public:
  // The texts may contain anything: control characters are escaped, and each text is cut at 4000 characters.
  Error(std::string_view what_failed, std::string_view reason, std::string_view hint = {},
        ErrorKind kind = ErrorKind::failure);

  // Wrong usage or configuration: exit code 2.
  static Error usage(std::string_view what_failed, std::string_view reason, std::string_view hint = {});

  // A copy with a remedy, which is shown in addition to the hint.
  Error mended_by(Remedy remedy, std::string detail = {}) const;

  // A copy with this cause, unless it already has one.
  Error because(Cause cause) const;

  // A copy that names the server, unless it already names one.
  Error on(std::string server_name) const;

  const std::string& what_failed() const { return what_failed_; }
  const std::string& server() const { return server_; }
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }
  Remedy remedy() const { return remedy_; }
  const std::string& remedy_detail() const { return remedy_detail_; }
  ErrorKind kind() const { return kind_; }
  Cause cause() const { return cause_; }

  // "SERVER: WHAT: REASON" on one line, without the hint. Skips empty parts.
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

// Thrown by a call that was stopped by a Cancel token. It is not an Error, so handlers do not mistake it for
// a failure.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace remote
