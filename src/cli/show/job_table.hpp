#pragma once

#include <string>
#include <vector>

#include "cli/show/launches.hpp"

// Jobs as a table for people.

namespace remote::cli {

struct TableRow {
  Batch batch;
  bool dim = false;
};

struct TableOptions {
  bool ranks = false;  // a row each rank, not each launch
  bool ids = false;    // a column with the beginnings of the ids of jobs, and of launches in a launch's row
};

// What is silent for long, each with the command that shows where it is.
std::vector<std::string> silent_notices(const std::vector<TableRow>& rows);

// For stdout, with a newline at its end.
std::string job_table(const Context& context, const std::vector<TableRow>& rows, const TableOptions& options);

}  // namespace remote::cli
