//! The reading of each kind of expression.

use std::collections::BTreeSet;

use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, BinOp, Block, Expr, ExprAsync, ExprClosure, ExprForLoop, ExprIf, ExprLet, ExprMatch, ExprWhile, Item, Local,
    Macro, Pat, PatGuard, PatIdent, Stmt,
};

use super::UsageReader;
use super::expressions::{
    HasLet, cloned_variable, is_block_like, is_clone, is_place, makes_value, returns_no_borrow, sends,
};
use crate::clones::marks::{Mark, mark};

impl VisitMut for UsageReader {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Some(site) = cloned_variable(expr).and_then(|name| self.clone_of(&name)) {
            mark(expr, Mark::Variable(site));
            return;
        }
        match expr {
            Expr::MethodCall(call) if is_clone(call) && makes_value(&call.receiver) => {
                self.visit_expr_mut(&mut call.receiver);
                mark(expr, Mark::Value);
            }
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident() {
                    self.mention(&name.to_string(), false);
                }
            }
            Expr::Reference(reference) => self.borrow(&mut reference.expr),
            Expr::RawAddr(address) => self.borrow(&mut address.expr),
            Expr::MethodCall(call) => {
                if returns_no_borrow(call) {
                    self.visit_expr_mut(&mut call.receiver);
                } else {
                    self.borrow(&mut call.receiver);
                }
                let sending = usize::from(sends(call));
                self.sending += sending;
                for argument in &mut call.args {
                    self.visit_expr_mut(argument);
                }
                self.sending -= sending;
            }
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.visit_expr_mut(&mut binary.left);
                self.optional(|this| this.visit_expr_mut(&mut binary.right));
            }
            Expr::Return(expr) => {
                visit_mut::visit_expr_return_mut(self, expr);
                self.now += 1;
                if self.inner == 0 {
                    self.returns.push((self.now, self.path.clone(), self.depth));
                }
            }
            Expr::Block(block) => {
                self.has_labels |= block.label.is_some();
                self.visit_block_mut(&mut block.block);
            }
            Expr::Assign(assign) => {
                self.visit_expr_mut(&mut assign.right);
                self.borrow(&mut assign.left);
            }
            Expr::Loop(body) => self.repeated(|this| this.visit_block_mut(&mut body.body)),
            Expr::Verbatim(tokens) => self.mention_all(tokens.clone()),
            other => visit_mut::visit_expr_mut(self, other),
        }
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut ExprClosure) {
        self.inner += 1;
        self.repeated(|this| {
            for input in &closure.inputs {
                this.declare(input, false, &BTreeSet::new());
            }
            this.visit_expr_mut(&mut closure.body);
        });
        self.inner -= 1;
    }

    fn visit_expr_async_mut(&mut self, block: &mut ExprAsync) {
        self.inner += 1;
        self.visit_block_mut(&mut block.block);
        self.inner -= 1;
    }

    fn visit_expr_let_mut(&mut self, binding: &mut ExprLet) {
        self.borrow(&mut binding.expr);
        self.declare(&binding.pat, false, &BTreeSet::new()); // the head is a unit
    }

    fn visit_expr_if_mut(&mut self, expr: &mut ExprIf) {
        let (fork, first) = (self.fork(), self.sites.len());
        let mut kept = BTreeSet::new();
        self.scope(|this| {
            kept = this.statement(|this| this.visit_expr_mut(&mut expr.cond));
            this.branch(fork, 0, |this| this.visit_block_mut(&mut expr.then_branch));
        });
        if let Some((_, otherwise)) = &mut expr.else_branch {
            self.branch(fork, 1, |this| this.visit_expr_mut(otherwise));
        }
        let mut has_let = HasLet(false);
        has_let.visit_expr(&expr.cond);
        if has_let.0 {
            self.keep(&kept, first);
        }
    }

    fn visit_expr_match_mut(&mut self, expr: &mut ExprMatch) {
        let (fork, first) = (self.fork(), self.sites.len());
        let is_place = is_place(&expr.expr);
        let kept = self.statement(|this| this.borrow(&mut expr.expr));
        for (path, arm) in expr.arms.iter_mut().enumerate() {
            self.branch(fork, path, |this| {
                let Arm { pat, body, .. } = arm;
                match pat {
                    Pat::Guard(PatGuard { pat, guard, .. }) => {
                        this.declare(pat, false, &kept);
                        this.repeated(|this| this.visit_expr_mut(guard));
                    }
                    pat => this.declare(pat, false, &kept),
                }
                this.visit_expr_mut(body);
            });
        }
        if !is_place {
            self.keep(&kept, first);
        }
    }

    fn visit_expr_for_loop_mut(&mut self, expr: &mut ExprForLoop) {
        let first = self.sites.len();
        let kept = self.statement(|this| this.borrow(&mut expr.expr));
        self.repeated(|this| {
            this.declare(&expr.pat, false, &kept);
            this.visit_block_mut(&mut expr.body);
        });
        self.keep(&kept, first);
    }

    fn visit_expr_while_mut(&mut self, expr: &mut ExprWhile) {
        self.repeated(|this| {
            let first = this.sites.len();
            let kept = this.statement(|this| this.visit_expr_mut(&mut expr.cond));
            this.visit_block_mut(&mut expr.body);
            this.keep(&kept, first);
        });
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.scope(|this| visit_mut::visit_block_mut(this, block));
    }

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Expr(expr, _) if is_block_like(expr) => self.visit_expr_mut(expr),
            stmt => {
                self.statement(|this| visit_mut::visit_stmt_mut(this, stmt));
            }
        }
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            match &local.pat {
                Pat::Ident(PatIdent { by_ref: None, subpat: None, .. }) | Pat::Type(_) => {
                    self.visit_expr_mut(&mut init.expr)
                }
                _ => self.borrow(&mut init.expr),
            }
            if let Some((_, otherwise)) = &mut init.diverge {
                self.optional(|this| this.visit_expr_mut(otherwise));
            }
        }
        self.declare(&local.pat, false, &BTreeSet::new()); // the statement is a unit
    }

    fn visit_macro_mut(&mut self, call: &mut Macro) {
        self.mention_all(call.tokens.clone());
    }

    fn visit_item_mut(&mut self, item: &mut Item) {
        self.is_opaque |= matches!(item, Item::Macro(_));
    }

    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
}
