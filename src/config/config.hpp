#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/launch.hpp>

#include "config/yaml_reader.hpp"

// The contents of .remote/configs.yaml as plain structs. docs/configuration.md documents every key.

namespace remote::config {

// A value and its source ("configs.yaml:12", "~/.ssh/config:3", "default"), which `remote servers` displays.
template <typename Value>
struct Setting {
  Value value{};
  std::string origin = "default";
  bool is_default() const { return origin == "default"; }
};

enum class HostKeys { accept_new, strict };

// How to connect. automatic: through an OpenSSH master if one is open, otherwise with libssh.
enum class ConnectBy { automatic, libssh, openssh };
std::string to_string(ConnectBy what);

// Options for sbatch in all jobs of a Slurm login node.
struct Slurm {
  std::optional<std::string> partition;
  std::optional<std::string> account;
  std::optional<std::string> time;  // in sbatch's format: "2:00:00"
  std::optional<std::string> constraint;
  std::optional<int> gpus_per_node;
  std::vector<std::string> options;  // more options for sbatch, one each: "--mem=32G"
};

// A server as in configs.yaml. A missing key is nullopt: ssh/target.hpp takes its value from ~/.ssh/config or
// the defaults.
struct Server {
  std::string name;
  std::string hostname;  // an address, a host name, or an alias in ~/.ssh/config
  std::optional<std::string> username;
  std::optional<std::filesystem::path> private_key;  // absolute, from the project folder; ~ is expanded
  std::optional<std::string> password;
  std::optional<std::string> password_env;
  std::optional<std::string> password_command;
  std::optional<int> port;
  std::optional<std::filesystem::path> known_hosts;  // absolute; default: the user's known_hosts
  std::optional<std::string> proxy_jump;             // [USER@]HOST[:PORT], several separated by commas
  std::optional<ConnectBy> connect_by;               // default: the setting for all servers
  std::optional<std::string> internal_address;
  std::optional<int> gpus;       // the expected number of GPUs
  std::vector<int> gpu_indices;  // alternatively, the GPUs that its jobs may use; empty: all
  std::vector<std::pair<std::string, std::string>> env;
  std::optional<std::string> remote_path;   // the project's folder on this server; default: ~/<name>
  std::optional<std::string> agent_folder;  // if set, the agent uses only this folder
  std::optional<std::string> prologue;      // replaces the prologue for all servers
  std::optional<Slurm> slurm;               // the server is a login node, and its jobs run under Slurm
  std::optional<Container> container;       // of its jobs: its own keys, or else those for all servers
  int line = 0;                             // its line in configs.yaml
  std::map<std::string, int> key_lines;     // key -> line, for `remote servers`

  // Variables of its commands and jobs: `env`, and CUDA_VISIBLE_DEVICES if the GPUs are listed. Variables in
  // a request override them.
  std::vector<std::pair<std::string, std::string>> variables() const;
};

enum class PythonManager { conda, venv, uv, system };
std::string to_string(PythonManager manager);

struct Python {
  PythonManager manager = PythonManager::conda;
  bool manager_given = false;
  std::optional<std::string> version;  // "3.11"; default for conda: the version of python3 on this machine
  bool system_site_packages = false;   // venv: can use the server's own packages
  std::string miniconda_url;           // "": the default mirror; "{arch}" is replaced by x86_64 or aarch64
  std::map<std::string, std::string> miniconda_sha256;  // by architecture
  std::string conda;        // an existing installation on the servers; default: remote installs its own
  std::string environment;  // conda: the environment's name, default <name>_env; venv: the folder .venv
  // options of pip, in the order of its manual page
  std::optional<std::string> index_url;
  std::vector<std::string> extra_index_urls;
  std::vector<std::string> find_links;   // folder (relative to the project) or URL
  std::vector<std::string> constraints;  // files in the project
  bool no_index = false;
};

// `notify:`: the recipient of a notification when a launch has ended, sent by the servers. Either a URL,
// which is a secret, or a command.
struct Notify {
  std::string url{};
  std::string shape = "json";  // format of the HTTP request: json, ntfy or slack
  std::string command{};       // a line for sh on the first server
};

// `checkpoint:`: when a checkpoint is complete. '*' matches the same text in both patterns.
struct Checkpoint {
  std::string files{};     // a name with one '*'; a trailing slash means a folder
  std::string complete{};  // a file next to it that exists if the checkpoint is complete
};

struct Config {
  std::filesystem::path project;  // the project's folder on this machine, absolute
  std::filesystem::path file;     // project/.remote/configs.yaml
  std::string name;
  std::vector<Server> servers;  // in file order
  std::string scripts_folder = ".remote/scripts";
  std::string logs_folder = ".remote/logs";
  std::string jobs_folder = ".remote/jobs";
  // Used instead of jobs_folder if that contains jobs of labml_remote.
  static constexpr const char* own_jobs_folder = ".remote/remote-jobs";
  std::string exclude_file = ".remote/exclude.txt";
  std::string remote_scripts_folder_name = ".remote-scripts";
  std::string remote_jobs_folder_name = ".jobs";
  std::optional<std::string> remote_path;   // for all servers; a server's own setting overrides it
  std::optional<std::string> agent_folder;  // for all servers; a server's own setting overrides it
  Python python;
  LaunchDefaults launch;
  NodePtr launch_node;  // `launch:`, which each entry of `launches:` inherits; nullptr: not set
  std::vector<YamlNode::Entry> launches;  // in file order, validated
  std::optional<Container> container;     // for all servers; the image may be in each server's own setting
  std::string prologue;                   // sh code that runs before every command and job, for all servers
  std::vector<std::string> system_packages;
  std::optional<Notify> notify;
  std::vector<std::string> outputs;  // files, folders and patterns in the project that launches write
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> spares;  // names of servers that replace lost ones in a launch
  HostKeys host_keys = HostKeys::accept_new;
  int connect_timeout_s = 10;
  ConnectBy connect_by = ConnectBy::automatic;
  std::vector<std::string> warnings;  // "FILE:7:5: unknown key 'hostnme' …; did you mean …?"

  std::filesystem::path local(const std::string& relative) const { return project / relative; }
  // The project's folder on a server, in the form for remote_path_word(): "~/name", "~/x" or "/x".
  std::string project_path_on(const Server& server) const;
  // The code that runs there before every command and job; may be empty.
  const std::string& prologue_on(const Server& server) const {
    return server.prologue ? *server.prologue : prologue;
  }
};

// The nearest folder, from this one upward, that contains .remote/configs.yaml.
std::optional<std::filesystem::path> nearest_project(const std::filesystem::path& folder);

// Searches from `start` upward for a folder with .remote/configs.yaml, as git does for .git. Throws Error
// (usage) that names `start` and suggests `remote init`.
std::filesystem::path find_project(const std::filesystem::path& start);

// Reads and validates PROJECT/.remote/configs.yaml. Throws Error (usage) with "FILE:LINE:COLUMN: …" for an
// invalid file; unknown keys become warnings or, with `strict`, errors. Makes `project` absolute.
Config load(const std::filesystem::path& project, bool strict = false);
// Parses text instead of a file, for tests and the fuzzer; `project` need not exist.
Config parse(const std::string& text, const std::filesystem::path& project, bool strict = false);

// The settings in `launch:` or, with a name, in that entry of `launches:`, including inherited settings.
// Throws Error (usage) if the name does not exist.
LaunchDefaults launch_settings(const Config& config, const std::string& name);
std::vector<std::string> launch_names(const Config& config);
// The launch names, without reading the rest of the file; empty if it cannot be read.
std::vector<std::string> launch_names(const std::filesystem::path& project);

// A server name: letters, digits, '.', '_', '-', not starting with '.' or '-'. It becomes part of file names.
bool valid_server_name(const std::string& name);

// The names in a list whose items may each contain several names separated by commas: "a,b".
std::vector<std::string> split_names(const std::vector<std::string>& items);

// The servers whose names match one of the globs (see split_names), in file order; all of them if there are
// no globs. Throws Error (usage) with the names of the servers for a glob without a match.
std::vector<Server> select_servers(const Config& config, const std::vector<std::string>& globs);

}  // namespace remote::config
