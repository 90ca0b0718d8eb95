#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/launch.hpp>

#include "config/yaml_reader.hpp"

// .remote/configs.yaml as plain structs. docs/configuration.md documents every key.

namespace remote::config {

// One value and where it came from ("configs.yaml:12", "~/.ssh/config:3", "default"): `remote servers` shows
// it.
template <typename Value>
struct Setting {
  Value value{};
  std::string origin = "default";
  bool is_default() const { return origin == "default"; }
};

enum class HostKeys { accept_new, strict };

// What carries the commands: an OpenSSH master where one is open and else libssh, or one of the two.
enum class ConnectBy { automatic, libssh, openssh };
std::string to_string(ConnectBy what);

// What a login node of Slurm says to sbatch for all its jobs.
struct Slurm {
  std::optional<std::string> partition;
  std::optional<std::string> account;
  std::optional<std::string> time;  // as sbatch takes it: "2:00:00"
  std::optional<std::string> constraint;
  std::optional<int> gpus_per_node;
  std::vector<std::string> options;  // more of sbatch's, one each: "--mem=32G"
};

// A server as configs.yaml has it. What is absent there is nullopt here: ssh/target.hpp fills it in from
// ~/.ssh/config and the defaults.
struct Server {
  std::string name;
  std::string hostname;  // an address, a name, or an alias of ~/.ssh/config
  std::optional<std::string> username;
  std::optional<std::filesystem::path> private_key;  // absolute (made so from the project folder, ~ expanded)
  std::optional<std::string> password;
  std::optional<std::string> password_env;
  std::optional<std::string> password_command;
  std::optional<int> port;
  std::optional<std::filesystem::path> known_hosts;  // absolute, like private_key; default: the user's own
  std::optional<std::string> proxy_jump;             // [USER@]HOST[:PORT], several with commas
  std::optional<ConnectBy> connect_by;               // default: that for all servers
  std::optional<std::string> internal_address;
  std::optional<int> gpus;       // how many it is expected to have
  std::vector<int> gpu_indices;  // or those that its jobs may use; none: all
  std::vector<std::pair<std::string, std::string>> env;
  std::optional<std::string> remote_path;   // the project's folder on this server; default: ~/<name>
  std::optional<std::string> agent_folder;  // the only folder for the agent
  std::optional<std::string> prologue;      // in place of the one for all servers
  std::optional<Slurm> slurm;               // it is a login node: its jobs go to Slurm
  std::optional<Container> container;    // what its jobs run in: its own keys, and else those for all servers
  int line = 0;                          // where it stands in configs.yaml
  std::map<std::string, int> key_lines;  // key -> its line, for `remote servers`

  // The variables of its commands and jobs, which those of a request override: `env`, and
  // CUDA_VISIBLE_DEVICES where the GPUs are listed.
  std::vector<std::pair<std::string, std::string>> variables() const;
};

enum class PythonManager { conda, venv, uv, system };
std::string to_string(PythonManager manager);

struct Python {
  PythonManager manager = PythonManager::conda;
  bool manager_given = false;
  std::optional<std::string> version;  // "3.11"; conda's default: the laptop's python3
  bool system_site_packages = false;   // venv: sees the server's own packages
  std::string miniconda_url;           // "" = the default mirror; "{arch}" is x86_64 or aarch64
  std::map<std::string, std::string> miniconda_sha256;  // by architecture
  std::string conda;        // an installation on the servers that is used as it is; default: one of our own
  std::string environment;  // conda's environment, default <name>_env; venv's folder, .venv
  // pip's options, in the order of its manual page
  std::optional<std::string> index_url;
  std::vector<std::string> extra_index_urls;
  std::vector<std::string> find_links;   // folder (relative ones: in the project) or URL
  std::vector<std::string> constraints;  // files of the project
  bool no_index = false;
};

// `notify:`: who is told, by the servers, when a launch has ended. Either a URL, which is a secret, or a
// command.
struct Notify {
  std::string url{};
  std::string shape = "json";  // of what is posted: json, ntfy or slack
  std::string command{};       // a line for sh on the first server
};

// `checkpoint:`: when a checkpoint is complete. '*' is the same text in both.
struct Checkpoint {
  std::string files{};     // a name with one '*'; with a slash at its end a folder
  std::string complete{};  // the file beside it whose existence says so
};

struct Config {
  std::filesystem::path project;  // the project's folder on this machine, absolute
  std::filesystem::path file;     // project/.remote/configs.yaml
  std::string name;
  std::vector<Server> servers;  // in the order of the file
  std::string scripts_folder = ".remote/scripts";
  std::string logs_folder = ".remote/logs";
  std::string jobs_folder = ".remote/jobs";
  // Stands in for jobs_folder where that one holds the jobs of labml_remote.
  static constexpr const char* own_jobs_folder = ".remote/remote-jobs";
  std::string exclude_file = ".remote/exclude.txt";
  std::string remote_scripts_folder_name = ".remote-scripts";
  std::string remote_jobs_folder_name = ".jobs";
  std::optional<std::string> remote_path;   // for all servers; a server's own wins
  std::optional<std::string> agent_folder;  // likewise
  Python python;
  LaunchDefaults launch;
  NodePtr launch_node;  // `launch:`, which each of `launches:` inherits; null: it is not there
  std::vector<YamlNode::Entry> launches;  // in the order of the file, checked
  std::optional<Container> container;  // for all servers; it may lack an image, which a server's own then has
  std::string prologue;                // sh text that runs before every command and job, for all servers
  std::vector<std::string> system_packages;
  std::optional<Notify> notify;
  std::vector<std::string> outputs;  // files, folders and patterns of the project that launches write
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> spares;  // names of servers that launches use when others are lost
  HostKeys host_keys = HostKeys::accept_new;
  int connect_timeout_s = 10;
  ConnectBy connect_by = ConnectBy::automatic;
  std::vector<std::string> warnings;  // "FILE:7:5: unknown key 'hostnme' …; did you mean …?"

  std::filesystem::path local(const std::string& relative) const { return project / relative; }
  // The project's folder on a server, as remote_path_word() takes it: "~/name", "~/x" or "/x".
  std::string project_path_on(const Server& server) const;
  // What runs there before every command and job; empty: nothing.
  const std::string& prologue_on(const Server& server) const {
    return server.prologue ? *server.prologue : prologue;
  }
};

// The folder itself, or the nearest one above it, that holds .remote/configs.yaml.
std::optional<std::filesystem::path> nearest_project(const std::filesystem::path& folder);

// Walks up from `start` to a folder that holds .remote/configs.yaml, as git does for .git. Throws Error
// (usage) that names `start` and suggests `remote init`.
std::filesystem::path find_project(const std::filesystem::path& start);

// Reads and checks PROJECT/.remote/configs.yaml. Throws Error (usage) with "FILE:LINE:COLUMN: …" for what is
// wrong; unknown keys become warnings, or with `strict` the Error. `project` is made absolute.
Config load(const std::filesystem::path& project, bool strict = false);
// The same from text, for tests and the fuzzer; `project` need not exist.
Config parse(const std::string& text, const std::filesystem::path& project, bool strict = false);

// What `launch:` says (config.launch), or the one of `launches:` with this name, with what it inherits.
// Throws Error (usage) for a name that is not there.
LaunchDefaults launch_settings(const Config& config, const std::string& name);
std::vector<std::string> launch_names(const Config& config);
// The same, of a file of which nothing else is read; none where it cannot be read.
std::vector<std::string> launch_names(const std::filesystem::path& project);

// A server name: letters, digits, '.', '_', '-', not beginning with '.' or '-'. It becomes part of file
// names.
bool valid_server_name(const std::string& name);

// The names in a list of which each item may be several with commas: "a,b".
std::vector<std::string> split_names(const std::vector<std::string>& items);

// The servers whose name matches one of the globs (see split_names), in the order of the file; all when there
// are none. A glob that matches nothing is an Error (usage) that names the servers there are.
std::vector<Server> select_servers(const Config& config, const std::vector<std::string>& globs);

}  // namespace remote::config
