#include "cli/other_tools.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/shell_quote.hpp"
#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/guide_words.hpp"
#include "cli/line_meaning.hpp"
#include "cli/parser.hpp"
#include "cli/torchrun_line.hpp"
#include "cli/word_list.hpp"
#include "cli/words.hpp"

namespace remote::cli {
namespace {

// Adds the interpreter in front of a script that is not found in PATH.
WordList as_program(WordList program) {
  const std::string first = word_at(program, 0);
  if (first.find('/') == std::string::npos && (first.ends_with(".sh") || first.ends_with(".py"))) {
    program.insert(program.begin(), first.ends_with(".sh") ? "bash" : "python");
  }
  return program;
}

struct Typed {
  std::string_view command;  // the equivalent command of this program, from the table
  WordList words;            // as typed, starting with the other tool's word
  const WordList& servers;
  bool names_place = false;  // the word after "docker exec" is a container
};

// Returns the equivalent line, after "remote". If it is empty or not plausible, the hint refers to the
// command's help instead.
using Translate = WordList (*)(const Typed&);

constexpr std::string_view kinds = " job jobs pod pods launch launches task tasks ";

// "describe job 3", "logs pod/3"
WordList name_jobs(const Typed& typed) {
  WordList rest = tail_of(typed.words);
  if (has_name(kinds, word_at(rest, 0))) {
    rest.erase(rest.begin());
  }
  for (std::string& word : rest) {
    const std::size_t slash = std::min(word.find('/'), word.size());
    word = has_name(kinds, word.substr(0, slash)) ? word.substr(std::min(slash + 1, word.size())) : word;
  }
  return joined({std::string(typed.command)}, rest);
}

// "check a root@b"
WordList name_servers(const Typed& typed) {
  WordList line{std::string(typed.command)};
  std::string named;
  for (const std::string& word : tail_of(typed.words)) {
    const std::string server = server_in(word, typed.servers);
    if (server.empty()) {
      line.push_back(word);
    } else {
      named += (named.empty() ? "" : ",") + server;
    }
  }
  return named.empty() ? line : joined(line, {"--server", named});
}

WordList run_on(const std::string& server, const WordList& program) {
  return joined(server.empty() ? WordList{"run", "--"} : WordList{"run", "--server", server, "--"},
                as_program(program));
}

// "servers" for "get nodes" and "nvidia-smi"; "run -- nvidia-smi -L"
WordList list_servers(const Typed& typed) {
  const WordList line = name_servers(typed);
  return is_meant(line, typed.servers) || typed.words[0] != "nvidia-smi" ? line : run_on("", typed.words);
}

// "ps aux" is the program ps.
WordList list_jobs(const Typed& typed) {
  const WordList line = name_jobs(typed);
  const bool is_program = has_name(" ls ps ", typed.words[0]) && typed.words.size() > 1 &&
                          std::ranges::none_of(typed.words, [&](const std::string& word) {
                            return !server_in(word, typed.servers).empty();
                          });
  return is_meant(line, typed.servers) || !is_program ? line : run_on("", typed.words);
}

// "describe node a", "scontrol show job 3"
WordList show_one(const Typed& typed) {
  const bool is_slurms = typed.words[0] == "scontrol";
  const WordList rest = tail_of(typed.words, is_slurms ? 2 : 1);
  if (is_slurms && word_at(typed.words, 1) != "show") {
    return {};
  }
  if (has_name(" node nodes ", word_at(rest, 0))) {
    return name_servers({"servers", joined({"servers", "--verbose"}, tail_of(rest)), typed.servers});
  }
  return name_jobs({typed.command, joined({"show"}, rest), typed.servers});
}

// "get pods", "get 3 out.txt"
WordList get_something(const Typed& typed) {
  const std::string what = word_at(typed.words, 1);
  if (has_name(" node nodes server servers ", what)) {
    return name_servers({"servers", tail_of(typed.words), typed.servers});
  }
  return has_name(kinds, what) ? name_jobs({"job-list", typed.words, typed.servers}) : name_jobs(typed);
}

WordList start_again(const Typed& typed) {
  return typed.words.size() == 1 ? WordList{"rerun", "last"} : name_jobs(typed);
}

// Removes options of ssh and docker exec that are not needed for a command on a server. `tunnel`: the
// argument of ssh -L.
WordList without_terminal_options(const Typed& typed, std::string& tunnel) {
  WordList rest = tail_of(typed.words);
  const bool is_ssh = typed.words[0] == "ssh";
  while (!rest.empty() && has_name(" -it -ti -i -t -tt -T -A -X -Y -N -p -l -L ", rest[0])) {
    const bool has_value = is_ssh && has_name(" -i -p -l -L ", rest[0]);
    tunnel = has_value && rest[0] == "-L" ? word_at(rest, 1) : tunnel;
    rest = tail_of(rest, has_value ? 2 : 1);
  }
  return rest;
}

// "ssh root@a", "ssh a nvidia-smi", "bash train.sh"
WordList open_shell(const Typed& typed) {
  std::string tunnel;
  const WordList rest = without_terminal_options(typed, tunnel);
  const std::string server = server_in(word_at(rest, 0), typed.servers);
  if (!tunnel.empty()) {
    return {"forward", server, tunnel};
  }
  if (server.empty() && !rest.empty()) {
    return has_name(" sh bash ", typed.words[0]) ? run_on("", typed.words) : WordList();
  }
  const WordList program = tail_of(rest, word_at(rest, 1) == "--" ? 2 : 1);
  return program.empty() ? joined({"shell"}, server.empty() ? WordList() : WordList{server})
                         : run_on(server, program);
}

// "exec -it a -- htop", "exec hostname"
WordList run_command(const Typed& typed) {
  std::string tunnel;
  const WordList rest = without_terminal_options(typed, tunnel);
  if (const std::string server = server_in(word_at(rest, 0), typed.servers); !server.empty()) {
    const WordList program = tail_of(rest, word_at(rest, 1) == "--" ? 2 : 1);
    if (program.empty() || (program.size() == 1 && has_name(" sh bash zsh ", program[0]))) {
      return {"shell", server};
    }
    const WordList line = run_on(server, program);
    return has_name(" -it -ti -t -tt ", word_at(typed.words, 1)) ? joined({"run", "--tty"}, tail_of(line))
                                                                 : line;
  }
  if (typed.names_place || word_at(rest, 1) == "--") {
    return {};
  }
  const WordList program = words_behind_options("run", rest);
  const WordList options = head_of(rest, program);
  const bool is_marked = word_at(program, 0) == "--";
  return joined(joined({"run"}, options), is_marked ? program : as_program(program));
}

// "nohup python train.py &", "sbatch job.sh"
WordList start_job(const Typed& typed) {
  WordList rest = tail_of(typed.words);
  if (!rest.empty() && rest.back() == "&") {
    rest.pop_back();
  }
  const WordList program = words_behind_options("job-run", rest);
  WordList options = head_of(rest, program);
  if (typed.servers.size() > 1 && std::ranges::none_of(options, [](const std::string& word) {
        return word == "--server" || word.starts_with("--server=");
      })) {
    options.insert(options.begin(), {"--server", typed.servers.front()});
  }
  return start_program("job-run", options, as_program(without_mark(program)));
}

// "srun hostname", "mpirun -H a,b ./a.out"
WordList start_ranks(const Typed& typed) {
  const WordList rest = tail_of(typed.words);
  const WordList program = words_behind_options("launch", rest);
  const WordList options = head_of(rest, program);
  return start_program(is_python_program(program) ? "torch-launch" : "launch", options, program);
}

WordList start_training(const Typed& typed) {
  return line_for_torchrun(typed.words, typed.servers);
}

// "port-forward a 8080:80"
WordList forward_ports(const Typed& typed) {
  WordList line{"forward"};
  for (const std::string& word : tail_of(typed.words)) {
    const std::string server = server_in(word, typed.servers);
    line.push_back(server.empty() ? word : server);
  }
  return line;
}

// "pip install -r requirements.txt"; "pip list" is the program pip.
WordList install_packages(const Typed& typed) {
  const bool is_editable = std::ranges::any_of(
      typed.words, [](const std::string& word) { return has_name(" -e --editable . ", word); });
  if (word_at(typed.words, 1) == "install" && is_editable) {
    return {};
  }
  return typed.words.size() == 1 || typed.words[1] == "install" ? WordList{"update-packages"}
                                                                : run_on("", typed.words);
}

WordList name_help(const Typed&) {
  return {};
}

struct OtherTool {
  std::string_view names;    // with blanks around each
  std::string_view command;  // the equivalent command of this program
  Translate translate;
};

// From docker, kubectl, git, systemd, rsync, scp, Slurm, SkyPilot and launchers.
constexpr OtherTool tools[] = {
    {" ps ls list job jobs queue squeue sacct ", "job-list", list_jobs},
    {" logs log tail follow cat fg ", "job-tail", name_jobs},
    {" kill stop cancel scancel terminate abort down killall pkill ", "job-kill", name_jobs},
    {" describe inspect seff scontrol ", "show", show_one},
    {" wait ", "job-wait", name_jobs},
    {" stacks py-spy ", "job-stacks", name_jobs},
    {" why ", "job-why", name_jobs},
    {" rm clean prune delete ", "job-clean", name_jobs},
    {" restart resume retry ", "rerun", start_again},
    {" ssh sh bash connect ", "shell", open_shell},
    {" exec cmd do ", "run", run_command},
    {" start submit sbatch bg nohup ", "job-run", start_job},
    {" train torchrun accelerate deepspeed lightning fabric fit ", "torch-launch", start_training},
    {" srun mpirun mpiexec ", "launch", start_ranks},
    {" apply create ", "torch-launch", name_help},
    {" cp scp get download fetch ", "job-pull", get_something},
    {" push sync send upload ", "rsync", name_servers},
    {" install ", "update-packages", name_servers},
    {" pip ", "update-packages", install_packages},
    {" provision deploy up ", "prepare", name_servers},
    {" doctor ping test diagnose ", "check", name_servers},
    {" hosts nodes info sinfo nvidia-smi gpus ", "servers", list_servers},
    {" watch htop monitor stats ", "top", name_servers},
    {" port-forward tunnel ", "forward", forward_ports},
};

// Programs whose second word is the command, and those commands that are known here.
struct Suite {
  std::string_view name;
  std::string_view commands;
};

constexpr Suite suites[] = {
    {"docker", " ps logs kill stop rm exec inspect stats top wait restart run "},
    {"podman", " ps logs kill stop rm exec inspect stats top wait restart run "},
    {"kubectl", " get describe logs exec delete apply port-forward top "},
    {"sky", " status exec logs queue cancel stop down check jobs launch "},
    {"jobs", " queue list cancel logs launch "},
    {"job", " list logs cancel kill tail wait stop run why clean pull stacks rsync "},
};

class Hints {
 public:
  Hints(const WordList& servers, const WordList& before) : servers_(servers), before_(before) {}

  std::string find(const WordList& typed, bool names_place = false) const {
    const auto* const suite = std::ranges::find(suites, typed[0], &Suite::name);
    if (suite != std::end(suites) && typed.size() > 1 && has_name(suite->commands, typed[1])) {
      return find_in_suite(*suite, tail_of(typed));
    }
    if (is_python(typed[0]) && word_at(typed, 1) == "-m" && word_at(typed, 2) == "pip") {
      return find(tail_of(typed, 2));
    }
    if (std::string hint = find_without_line(typed); !hint.empty()) {
      return hint;
    }
    if (const WordList program = start_typed_program(typed); !program.empty()) {
      return offer(program.front(), program);
    }
    const auto* const tool =
        std::ranges::find_if(tools, [&](const OtherTool& one) { return has_name(one.names, typed[0]); });
    if (tool != std::end(tools)) {
      return offer(std::string(tool->command),
                   tool->translate({tool->command, typed, servers_, names_place}));
    }
    return suite == std::end(suites) ? "" : "`remote --help` lists the commands";
  }

 private:
  std::string show(const WordList& line) const { return write_line(joined(before_, line)); }

  // The line if it is plausible; otherwise the help of its command, and the replacements for options.
  std::string offer(std::string command, const WordList& line) const {
    if (is_meant(line, servers_)) {
      return "use " + show(line);
    }
    command = line.empty() ? command : line.front();
    const std::string help = fmt::format("use `remote {} --help`", command);
    const auto options_end = std::ranges::find(line, "--");
    for (auto word = line.begin(); word != options_end; ++word) {
      const std::string hint = word->starts_with('-') ? hint_for_guides_option(command, *word) : "";
      if (!hint.empty()) {
        return help + ": " + hint;
      }
    }
    const bool lacks_key =
        has_name(" job-list job-tail job-kill job-wait job-stacks job-why rerun show ", command) &&
        line.size() > 1 && !is_job_key(line.back()) &&
        std::ranges::none_of(line, [](const std::string& word) { return word.starts_with('-'); });
    return (lacks_key ? "a job is named by its key, which `remote job-list` shows; " : "") + help;
  }

  // "kubectl get pods", "sky jobs queue", "job tail 3"
  std::string find_in_suite(const Suite& suite, WordList rest) const {
    if (rest[0] == "run" && suite.name == "job") {
      rest[0] = "submit";
    } else if (rest[0] == "run" || (rest[0] == "launch" && suite.name == "jobs")) {
      return offer("job-run", {});
    }
    if (suite.name == "job" && find_command("job-" + rest[0]) != nullptr) {
      rest[0] = "job-" + rest[0];
    }
    return find_command(rest[0]) != nullptr ? offer(rest[0], rest) : find(rest, true);
  }

  // Hints for what no single line can do.
  std::string find_without_line(const WordList& typed) const {
    const std::string& word = typed[0];
    if (has_name(" cp scp ", word) && std::ranges::any_of(typed, [](const std::string& one) {
          return one.find(':') != std::string::npos;
        })) {
      return "`remote job-pull KEY PATH --to DIR` copies a job's files here, `remote rsync` the project to "
             "the "
             "servers";
    }
    if (word == "salloc") {
      return "`remote shell SERVER --allocate OPTIONS` opens a shell on a node of Slurm";
    }
    if (has_name(" config configs settings ", word)) {
      return "`remote servers --verbose` shows the settings, `remote help configs` what they mean";
    }
    if (word == "version") {
      return "use `remote --version`";
    }
    const std::string packages = has_name(" install pip ", word) ? find_packages(typed) : "";
    return packages.empty()
               ? ""
               : fmt::format("add {} to requirements.txt, then run `remote update-packages`", packages);
  }

  std::string find_packages(const WordList& typed) const {
    constexpr std::string_view with_value =
        " -i --index-url --extra-index-url -f --find-links -t --target --proxy -c --constraint -e "
        "--editable ";
    WordList packages;
    std::string before;
    for (const std::string& word : tail_of(typed, typed[0] == "pip" ? 2 : 1)) {
      if (has_name(with_value, std::exchange(before, word))) {
        continue;
      }
      if (!word.starts_with('-') && !word.ends_with(".txt") && word != "." &&
          server_in(word, servers_).empty()) {
        packages.push_back(visible_line(word, 60));
      }
    }
    return typed[0] == "pip" && word_at(typed, 1) != "install" ? "" : join(packages, ", ");
  }

  // The line for a program, or a server and a program, typed without a command of this program in front.
  WordList start_typed_program(const WordList& typed) const {
    const std::string& first = typed[0];
    if (const std::string server = server_in(first, servers_); !server.empty()) {
      const WordList program = tail_of(typed, word_at(typed, 1) == "--" ? 2 : 1);
      return program.empty() ? WordList{"shell", server} : run_on(server, program);
    }
    const WordList rest = tail_of(typed);
    if (is_python(first)) {
      constexpr std::string_view tools_of_python =
          " venv ensurepip http.server json.tool pytest unittest timeit site compileall zipfile pdb ";
      const bool is_tool = word_at(rest, 0) == "-m" && has_name(tools_of_python, word_at(rest, 1));
      const bool is_training = !is_tool && std::ranges::any_of(rest, [](const std::string& word) {
        return word == "-m" || word.ends_with(".py");
      });
      return is_training ? start_program("torch-launch", {}, typed) : run_on("", typed);
    }
    if (first.ends_with(".py")) {
      return start_program("torch-launch", {}, typed);
    }
    const bool is_path = first.find('/') != std::string::npos || first.ends_with(".sh");
    return is_path ? start_program("launch", {}, as_program(typed)) : WordList();
  }

  const WordList& servers_;
  const WordList& before_;
};

}  // namespace

std::string hint_for_other_tool(const WordList& typed, const WordList& servers, const WordList& before) {
  return typed.empty() ? "" : Hints(servers, before).find(typed);
}

}  // namespace remote::cli
