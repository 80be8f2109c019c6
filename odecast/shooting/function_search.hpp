#pragma once

#include "odecast/shooting/integral_form.hpp"
#include "odecast/shooting/term_search.hpp"

namespace odecast {

/// The search for functions beside monomials: where a TermSearch begins, which then goes on by
/// single moves. A function of another kind that stands in for the right one, or several terms that
/// do, are hard to leave by these. The integral form of the equations (integral_form.hpp), linear
/// in all but the numbers inside, which have the values of a grid, tells thousands of sets at the
/// price of one path.
class FunctionSearch {
 public:
  /// The arguments are those of the search and must outlive it.
  FunctionSearch(TermSearch& search, const OfferedFunctions& offered, const Vector& active,
                 const Smoothed& smoothed, Budget& budget)
      : search_(search), offered_(offered), active_(active), smoothed_(smoothed), budget_(budget) {}

  /// From a path of monomials the best of what is found from it, from what the integral form alone
  /// would choose, from what it would choose of each family, and with one function of a family in
  /// several equations. The budget is that of all but the families, each of which has its own.
  void run(FittedPath& path, const Support& monomials, const Budget& for_family);
  /// Monomials and the functions that are offered, numbers inside at the values of their grids; of
  /// the dictionary's at most so many in each equation, those that explain most of what the path
  /// leaves in the integral form, or those of one family.
  Support with_functions(const Support& monomials, const FittedPath& path,
                         std::optional<Family> family = {}) const;

 private:
  const TermLibrary& library() const { return search_.shooting().library(); }
  /// The integral form over windows short enough to tell functions.
  IntegralForm short_form(const std::vector<double>& z) const;
  /// The quadratic model of terms of one equation in the integral form.
  QuadraticModel integral_model(const IntegralForm& form, int equation, const Support& own,
                                const Support& beside) const;
  /// The path of terms among these that the integral form alone would choose.
  FittedPath guess(const Support& all);
  /// Candidates of one equation beside a function: two monomials, or all that seem to be needed.
  struct Equation {
    double worth = 0;  ///< value of the latter in the model
    std::vector<int> few, more;
  };
  Equation equation_beside(const QuadraticModel& model, const std::vector<int>& monomials,
                           int function);
  /// The best path whose equations share one function, of the most promising in the integral form.
  FittedPath guess_shared(const Support& all);
  /// A function that one equation has, with its numbers, tried in each of the others, which keep of
  /// their terms what the integral form would choose beside it: what one loses another gains, and
  /// stand-ins for it in one of them seem as good. Returns whether the score fell.
  bool share(FittedPath& path, const Support& monomials);
  /// The best path with `to`, which is the function `from` of another equation, instead of what its
  /// equation has, beside none, one, … of the monomials.
  FittedPath shared(const FittedPath& path, const FieldTerm& from, const FieldTerm& to,
                    const Support& monomials);
  /// Improves a path, and keeps it where it is better than the best.
  void go_on(FittedPath& best, FittedPath from, const Support& monomials,
             std::optional<Family> family);

  TermSearch& search_;
  const OfferedFunctions& offered_;
  const Vector& active_;
  const Smoothed& smoothed_;
  Budget& budget_;
};

}  // namespace odecast
