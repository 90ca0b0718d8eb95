#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

// Finds programs on a job's PATH, after a shell has entered its Python environment.

namespace remote::agent {

struct GpuEnvironment {
  std::string path;
  std::map<std::string, std::string> visible;  // variables that hide GPUs
};

struct Activation {
  std::string text;                       // the shell text that entered it; "": none, or it has no Python
  Path python;                            // the first Python 3.6 or newer on PATH; "": none
  std::string python_version;             // "3.11.2"
  std::string python_refusal{};           // if there is none: the reason, as in FoundPython
  bool has_program = false;               // whether it has the program of the request
  std::optional<std::string> temporary;   // TMPDIR; nullopt: unknown
  std::string python_path;                // PYTHONPATH
  std::string python_home;                // PYTHONHOME
  std::optional<int> prologue_failure{};  // the exit status of the prologue, if it failed
  bool is_isolated = false;               // its Python ignores the packages in ~/.local
  std::string mpirun;                     // the output of `mpirun --version`
  bool has_mpi_daemon = false;
  // The variables that affect GPUs, in the environment after the activation; nullopt: unknown, because it was
  // not entered.
  std::optional<GpuEnvironment> gpus;
};

// Evaluates request.activate in one shell, which then searches for python, program and mpi, if requested.
// Falls back to the Python on the host's PATH if the environment has none, or if the activation fails or
// exceeds the limit.
Activation activate(const Host& host, const wire::FactsRequest& request,
                    std::chrono::milliseconds limit = std::chrono::seconds(18));

// The environment after this activation; nullopt if it was not entered. Each activation is run only once per
// process, because samples and waiting leases ask again every few seconds. Any thread.
std::optional<GpuEnvironment> find_gpu_environment(const Host& host, const std::string& activation);

// The output of this Python for `-c code`, without the trailing newline; "" if it fails.
std::string ask_python(const Host& host, const Activation& activation, std::string_view code);

}  // namespace remote::agent
