#include "workspace.h"

namespace ltr::weight_space {
namespace {

std::size_t pad(std::size_t columns) { return (columns + 7) / 8 * 8; }

}  // namespace

Workspace::Workspace(std::size_t columns, std::size_t single_size, std::size_t pairs, std::size_t conflict_count,
                     std::size_t members, std::size_t counts_size, std::size_t longest_path, std::size_t moved_rows,
                     std::size_t objectives, std::size_t depth)
    : boxes(depth),
      lists(depth),
      columns_(columns),
      pairs_(pairs),
      conflicts_(conflict_count),
      low_(depth * pad(columns)),
      high_(depth * pad(columns)),
      point_(depth * pad(columns)),
      moved_low_(depth * pad(columns)),
      moved_high_(depth * pad(columns)),
      used_(depth * columns),
      counts_(depth * members),
      fewer_(depth * counts_size),
      losable_(depth * members),
      room_(depth * (objectives - 1)),
      upper(12 * pairs + 100'000),
      lower(upper.size()),
      open(upper.size()),
      pair_columns((5 * pairs + 1024) * columns),
      slack(5 * pairs + 1024),
      pair_single((5 * pairs + 1024) * single_size),
      member(5 * pairs + 1024),
      run(member.size() + depth),
      conflict_columns((5 * conflict_count + 1024) * columns),
      apart(5 * conflict_count + 1024),
      one(apart.size()),
      other(apart.size()),
      scale(8 * (pairs / 8 + 3)),
      value(scale.size()),
      changed(scale.size()),
      changed_too(scale.size()),
      gather(scale.size()),
      place(scale.size()),
      listed(conflict_count + 16),
      in_conflict(8 * (conflict_count / 8 + 3)),
      unit_loss(members),
      forced(members),
      budget(members),
      touched(members),
      path(longest_path),
      inverse(longest_path),
      reach(longest_path),
      trial_counts(members),
      trial_fewer(counts_size),
      moves(columns),
      required(objectives),
      needed(objectives),
      packed(objectives),
      segment(objectives + 1),
      x(pad(columns)),
      g(pad(columns)),
      mixed(pad(columns)),
      least(columns),
      largest(columns),
      best(pad(columns)),
      score(columns),
      middle(columns),
      half_width(columns),
      ceiling(scale.size()),
      ceiling_quarter(scale.size()),
      half(single_size),
      loss(objectives * 4 * single_size),
      moved(moved_rows * 4 * single_size),
      change(4 * single_size) {
  for (std::size_t t = 0; t < depth; ++t) {
    boxes[t].low = low_.data() + t * pad(columns);
    boxes[t].high = high_.data() + t * pad(columns);
    boxes[t].point = point_.data() + t * pad(columns);
    boxes[t].moved_low = moved_low_.data() + t * pad(columns);
    boxes[t].moved_high = moved_high_.data() + t * pad(columns);
    boxes[t].used = used_.data() + t * columns;
    boxes[t].counts = counts_.data() + t * members;
    boxes[t].fewer = fewer_.data() + t * counts_size;
    boxes[t].losable = losable_.data() + t * members;
    boxes[t].room = room_.data() + t * (objectives - 1);
  }
  for (const Buffer<double>* vectors : {&low_, &high_, &point_, &x, &g, &mixed, &best}) vectors->fill(0.0);
  for (std::size_t x = 1; x < longest_path; ++x) inverse[x] = 1.0 / static_cast<double>(x);
  in_conflict.fill(0);
  half.fill(0.0f);
  moved.fill(0);
}

}  // namespace ltr::weight_space
